package workload

import (
	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
)

// Object is a kind that stands for one service: its status embeds
// commonv1.ServiceStatus.
type Object interface {
	engine.Object
	// ServiceStatus returns the fields that the scale subresource reads.
	ServiceStatus() *commonv1.ServiceStatus
}

// Described converts a description into the functions of stages:
//
//	var service = workload.Described[*v1alpha1.Thing](describe)
//	… {Condition: v1alpha1.ConditionInputsReady, Needs: service.Inputs}, …
type Described[T Object] func(T) Service

// Inputs is a Stage's Needs, see Service.Inputs.
func (d Described[T]) Inputs(cr T) []engine.Need { return d(cr).Inputs() }

// Configuration is a Stage's Build, see Service.Configuration.
func (d Described[T]) Configuration(cr T, in engine.Inputs) ([]engine.Child, error) {
	return d(cr).Configuration(in)
}

// Stateful is a Stage's Build, see Service.Stateful.
func (d Described[T]) Stateful(cr T, in engine.Inputs) ([]engine.Child, error) {
	return d(cr).Stateful(in)
}

// Stateless is a Stage's Build, see Service.Stateless.
func (d Described[T]) Stateless(cr T, in engine.Inputs) ([]engine.Child, error) {
	return d(cr).Stateless(in)
}

// Report is the Report of an engine.Service, see Service.Report.
func (d Described[T]) Report(cr T, in engine.Inputs) { d(cr).Report(cr.ServiceStatus(), in) }

// JudgeNetworks is the Judge of the stage with the pods, see Service.JudgeNetworks.
func (d Described[T]) JudgeNetworks(cr T, in engine.Inputs) (string, error) {
	return d(cr).JudgeNetworks(in)
}

// ImageCheck is a Stage's Build, see Service.ImageCheck.
func (d Described[T]) ImageCheck(cr T, in engine.Inputs) ([]engine.Child, error) {
	return d(cr).ImageCheck(in)
}

// JudgeImage is the Judge of the stage with ImageCheck, see Service.JudgeImage.
func (d Described[T]) JudgeImage(cr T, in engine.Inputs) (string, error) {
	return d(cr).JudgeImage(in)
}
