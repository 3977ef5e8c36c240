package tui

import (
	"brood/tui/panel"
	"brood/tui/panel/alerts"
	"brood/tui/panel/runs"
	"brood/tui/panel/trained"
	"brood/tui/replay"
	"brood/tui/textfmt"
)

// Temporary: names that tui/cli still uses.
type (
	Request     = panel.Request
	Opened      = panel.Opened
	LineID      = panel.LineID
	Options     = panel.Options
	Settings    = panel.Settings
	Library     = panel.Library
	Keeper      = panel.Keeper
	Estimate    = panel.Estimate
	Launcher    = panel.Launcher
	FormLine    = panel.FormLine
	Layout      = panel.Layout
	Draft       = panel.Draft
	Brancher    = panel.Brancher
	Traveller   = panel.Traveller
	Source      = panel.Source
	NamedLayout = panel.NamedLayout
	Branch      = panel.Branch
	Examined    = trained.Examined
	Examiner    = trained.Examiner
	Geometer    = trained.Geometer
	Teller      = alerts.Teller
	Replay      = replay.Replay
)

const PresetLine = panel.PresetLine

var (
	Known         = trained.Known
	Standing      = runs.Standing
	Figure        = textfmt.Figure
	Uncertainty   = textfmt.Uncertainty
	SeriesText    = textfmt.SeriesText
	ReportText    = trained.ReportText
	GeometryText  = trained.GeometryText
	FileCut       = textfmt.FileCut
	ASCIIOnly     = panel.ASCIIOnly
	ScoreText     = textfmt.ScoreText
	Number        = textfmt.Number
	Size          = textfmt.Size
	Rate          = textfmt.Rate
	DoingText     = panel.DoingText
	ParseSettings = panel.ParseSettings
	NewReplay     = replay.NewReplay
)
