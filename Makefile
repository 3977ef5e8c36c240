# Go alone builds brood: `go run .`. These are the habits around it.

.PHONY: build test race e2e fuzz lint generate check bench peer compare reproduction clean

build: # bin/brood
	CGO_ENABLED=0 go build -trimpath -o bin/brood .

test:
	go test ./...

race: # needs a C compiler
	STEPS=race .ci/run

e2e: # the scripts, on the built binary
	STEPS=e2e .ci/run

fuzz: # every fuzz function for some seconds; BROOD_LONG=1: a minute each
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
		bin/$$command -o docs/reproduction.md --results docs/results || exit 1; done

check: # everything, as CI does
	.ci/run

clean:
	rm -rf bin
