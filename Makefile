# Go alone builds brood: `go run .`. These are the habits around it.

.PHONY: build test long slow race scripts fuzz lint generate check bench peer compare reproduction clean

build: # bin/brood
	CGO_ENABLED=0 go build -trimpath -o bin/brood .

test: # the default tests
	go test ./...

GROUP = all
long: build # the default tests, all scripts and the long tests of a group: make long GROUP=fleets
	BROOD_BINARY=$(CURDIR)/bin/brood BROOD_LONG=$(GROUP) go test -timeout=60m ./...

slow: # the default tests: seconds of the slowest packages and tests
	go test -json ./... | sed -nE 's/.*"(pass|fail)","Package":"([^"]*)"(,"Test":"([^"/]*)")?,"Elapsed":([0-9.]+).*/\5 \2 \4/p' | sort -rn | head -40

race: # needs a C compiler
	STEPS=race .ci/run

scripts: build # what a person does with brood, on the built binary
	BROOD_BINARY=$(CURDIR)/bin/brood go test -run 'TestScripts|TestTerminal' ./tui/cli

fuzz: # ten thousand inputs to each decoder of foreign bytes
	STEPS=fuzz .ci/run

lint:
	STEPS="format vet staticcheck" .ci/run

generate:
	go generate ./...

bench: build # what this machine does, beside what it would allow
	for suite in kernels train es noise; do bin/brood bench $$suite || exit 1; done

peer: build # the same beside PyTorch, where that is installed
	models/native/peer/compare.sh

compare: # what became slower between two commits, measured in turn: make compare A=HEAD~1 B=HEAD
	go run ./models/native/peer/between $(A) $(B)

reproduction: build # every table of docs/reproduction.md anew, by the commands that the page names: hours
	grep -o '`brood reproduce [a-z-]* --seeds [0-9]*`' docs/reproduction.md | tr -d '`' | sort -u | while read -r command; do \
		bin/$$command --results docs/results || exit 1; done
	go test ./tui/cli -run TestReproductionPage -update-page

check: # everything, as CI does
	.ci/run

clean:
	rm -rf bin
