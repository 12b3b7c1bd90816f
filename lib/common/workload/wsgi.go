package workload

import (
	"fmt"
	"path"
	"slices"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
)

// ReasonImageIncomplete is the reason of a condition for an image that lacks programs, Python
// modules or files that the service needs.
const ReasonImageIncomplete = "ImageIncomplete"

// WSGI describes the application of an HTTP service, which a server of the image serves.
type WSGI struct {
	// Script is the application's program in older releases.
	Script string
	// Module is the application's Python module in newer releases.
	Module string
	// Program is the service's own server, which serves in an image without a WSGI server. It
	// reads its port and its workers from the configuration.
	Program string
	// LongestSeconds is more than the longest request takes: a process that is busy with one
	// request for longer is killed and replaced.
	LongestSeconds int64
	// Settings are the fields of the object.
	Settings commonv1.WSGISettings
}

// Workers returns the number of the server's processes.
func (s Service) Workers() int32 {
	if stated := s.WSGI.Settings.Workers; stated != nil {
		return *stated
	}
	limit := s.Spec.Resources.Limits.Cpu()
	if limit.IsZero() {
		return commonv1.DefaultWorkers
	}
	return int32(min(max(limit.Value(), 1), commonv1.MaxDefaultWorkers)) //nolint:gosec // bounded; Value rounds up
}

// application returns the last arguments of start-wsgi.
func (s Service) application() []string {
	return []string{fmt.Sprint(s.Port.Number), s.WSGI.Script, s.WSGI.Module, s.WSGI.Program}
}

// serve returns the command of an HTTP service.
func (s Service) serve() []string {
	if s.WSGI == nil {
		return s.Command
	}
	script, first := s.startWSGI()
	command := slices.Concat([]string{path.Join(config.ScriptsDir, script)}, first,
		[]string{"--workers", fmt.Sprint(s.Workers()), "--grace", fmt.Sprint(s.GraceSeconds), "--longest", fmt.Sprint(s.WSGI.LongestSeconds)})
	if threads := s.WSGI.Settings.Threads; threads != nil {
		command = append(command, "--threads", fmt.Sprint(*threads))
	}
	return append(command, s.application()...)
}

// checkImage writes the missing parts of the image to the termination log. An image may lack
// Python, in which start-wsgi is written.
const checkImage = `command -v python3 >/dev/null || { printf "lacks python3 on PATH" >/dev/termination-log; exit 0; }
exec "$0" --check "$@"`

// lacks is the beginning of the result of checkImage for an image that lacks something.
const lacks = "lacks "

// imageTask is the run of checkImage. It ends without an error, so that it runs once for each
// image.
func (s Service) imageTask() Task {
	_, first := s.startWSGI()
	arguments := slices.Concat(first, []string{"--import", "pymysql"})
	for _, file := range s.FromImage {
		if !s.hasExtraFile(file) {
			arguments = append(arguments, "--file", strings.Join(s.imagePaths(file), ","))
		}
	}
	arguments = append(arguments, s.application()...)
	return Task{Purpose: "img", Arguments: arguments, Depends: append([]string{s.Image()}, arguments...)}
}

// imagePaths returns the paths of a file of the image, as merge-config looks for it.
func (s Service) imagePaths(file string) []string {
	return []string{path.Join(s.etc(), file), path.Join("/usr/share", s.Project.Name+"-common", file), path.Join("/usr/share", s.Project.Name, file)}
}

func (s Service) hasExtraFile(name string) bool {
	for _, file := range s.extraFiles() {
		if file.Name == name {
			return true
		}
	}
	return false
}

// ImageCheck builds the Job that looks for the programs, modules and files of a WSGI service
// in its image, before any pod runs the image. The Job has neither configuration nor secrets.
func (s Service) ImageCheck(engine.Inputs) ([]engine.Child, error) {
	task := s.imageTask()
	script, _ := s.startWSGI()
	main := s.container("image", append([]string{"sh", "-ec", checkImage, path.Join(config.ScriptsDir, script)}, task.Arguments...)).
		WithVolumeMounts(mount(temporaryVolume, "/tmp"))
	scripts, err := s.scriptsRevision()
	if err != nil {
		return nil, err
	}
	return []engine.Child{s.once(task, s.podOf(main, scriptsSource(scripts), temporary()))}, nil
}

// JudgeImage returns a remark about the image, or an error if the image lacks something.
func (s Service) JudgeImage(in engine.Inputs) (string, error) {
	result := in.Result(s.JobName(s.imageTask()))
	if missing, incomplete := strings.CutPrefix(result, lacks); incomplete {
		return "", engine.Stop(ReasonImageIncomplete, "image %s lacks %s: set spec.containerImage to an image with all of it; the running pods keep their image", s.Image(), missing)
	}
	if result == "" {
		return "", nil
	}
	return "image " + s.Image() + ": " + result, nil
}
