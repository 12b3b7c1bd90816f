package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// TestConditionOfAnOlderGenerationIsNotMet also if the object's observedGeneration is the
// newest: its operator may not have reached this stage.
func TestConditionOfAnOlderGenerationIsNotMet(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{{Condition: "Met", Needs: func(cr *widget.Widget) []engine.Need {
		return []engine.Need{engine.Condition(&widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}, "SchemaReady")}
	}}}})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, "stale")}
	w.create(rack)
	w.playCondition(rack, "SchemaReady", "True", "")
	cr := w.widget("stale", widget.Spec{})
	w.awaitReady(cr)
	rack.Spec.Text = "edited"
	w.must(w.client.Update(w.ctx, rack))
	before := rack.DeepCopy()
	rack.Status.ObservedGeneration = rack.Generation // and the condition is that of the generation before
	w.must(w.client.Status().Patch(w.ctx, rack, client.MergeFrom(before)))
	w.Eventually(w.condition(cr, "Met")).Should(And(HavePrefix("False Waiting"), ContainSubstring("Rack stale: condition SchemaReady is of generation 1")))
	w.pass(cr)
	w.Expect(w.condition(cr, "Met")()).To(HavePrefix("False Waiting"))
	w.playCondition(rack, "SchemaReady", "True", "")
	w.awaitReady(cr)
}

// TestATimeStartsAPass although nothing changes. Each widget waits for the time in its text, and
// the first of them may be too late for it, because the machine is slow.
func TestATimeStartsAPass(t *testing.T) {
	w := newTestWorld(t)
	until := func(cr *widget.Widget) engine.Need {
		from, err := time.Parse(time.RFC3339Nano, cr.Spec.Text)
		w.must(err)
		return engine.Time(from)
	}
	start(w, service{Name: owner, Stages: []stage{
		{Condition: "Come", Needs: func(cr *widget.Widget) []engine.Need { return []engine.Need{until(cr)} }, Continue: true},
		{Condition: "Known", Needs: func(cr *widget.Widget) []engine.Need { return []engine.Need{until(cr).As("time")} }, Judge: func(_ *widget.Widget, in engine.Inputs) (string, error) {
			return fmt.Sprint(in.Met("time")), nil
		}},
	}})
	for wait := 3 * time.Second; ; wait *= 2 {
		from := time.Now().Add(wait)
		cr := w.widget("timed-"+wait.String(), widget.Spec{Text: from.Format(time.RFC3339Nano)})
		early := "False Waiting: it is not yet " + from.UTC().Format(time.RFC3339)
		w.Eventually(w.condition(cr, "Come")).Should(Or(Equal(early), HavePrefix("True")))
		if meta.IsStatusConditionTrue(cr.Status.Conditions, "Come") && wait < time.Minute {
			continue
		}
		known := meta.FindStatusCondition(cr.Status.Conditions, "Known") // in the same status
		w.Expect(known.Message).To(Equal("false"))
		w.awaitReady(cr)
		w.Expect(time.Now()).To(BeTemporally(">=", from))
		w.Eventually(w.condition(cr, "Known")).Should(Equal("True Complete: true"))
		return
	}
}

// failingReader fails reads of Secrets while it is set to fail.
type failingReader struct {
	client.Reader
	failing *atomic.Bool
	asked   *atomic.Int32
}

func (r failingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Secret); ok && r.failing.Load() {
		r.asked.Add(1)
		return errors.New("the API server is not available")
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

// TestReadsThatFailAreTriedAgain also in AnyOf and As: no event reports that they would
// succeed.
func TestReadsThatFailAreTriedAgain(t *testing.T) {
	for name, need := range map[string]engine.Need{
		"any": engine.AnyOf(engine.Secret("needed", "user"), engine.Secret("needed", "password")),
		"as":  engine.Secret("needed", "password").As("known"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.needed()
			failing, asked := &atomic.Bool{}, &atomic.Int32{}
			failing.Store(true)
			start(w, service{Name: owner, Stages: []stage{{
				Condition: "Met", Needs: func(*widget.Widget) []engine.Need { return []engine.Need{need} },
				Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
					return []engine.Child{configMap(cr.Name, string(in.Secret("needed")["password"]))}, nil
				},
			}}}, func(s *engine.Seam) { s.Live = failingReader{s.Live, failing, asked} })
			cr := w.widget(name, widget.Spec{})
			w.Eventually(w.condition(cr, "Met")).Should(And(HavePrefix("False Error"), ContainSubstring("not available")))
			w.Eventually(asked.Load).Should(BeNumerically(">", 2), "it is tried again")
			failing.Store(false)
			w.awaitReady(cr)
			w.Expect(w.textOf(name)()).To(Equal("p4ssw0rd"))
		})
	}
}

// TestAPassHoldsFewData: many passes run at once, and an object may refer to many Secrets.
func TestAPassHoldsFewData(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{{Condition: "InputsReady", Needs: func(*widget.Widget) (needs []engine.Need) {
		for i := range 5 {
			needs = append(needs, engine.AnyOf(engine.Secret(fmt.Sprint("big-", i), "x"), engine.Secret("none")))
		}
		return needs
	}}}})
	for i := range 5 {
		w.create(&corev1.Secret{ObjectMeta: metaOf(w.namespace, fmt.Sprint("big-", i)), Data: map[string][]byte{"x": make([]byte, 900<<10)}})
	}
	cr := w.widget("holds", widget.Spec{})
	w.Eventually(w.condition(cr, "InputsReady")).Should(And(HavePrefix("False Waiting: the Secrets and ConfigMaps to which this resource refers have more than 4 MiB together"), ContainSubstring("first of all Secret big-0")))
	small := w.secret("big-2")
	w.must(w.get(small))
	small.Data = map[string][]byte{"x": []byte("small")}
	w.must(w.client.Update(t.Context(), small))
	w.awaitReady(cr)
}

// TestOnlyTheLastListingWakes: an object that no longer lists a kind is not woken by objects
// of this kind, which wake another one.
func TestOnlyTheLastListingWakes(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{{Condition: "Listed", Needs: func(cr *widget.Widget) []engine.Need {
		if cr.Spec.Text != "lists" {
			return nil
		}
		return []engine.Need{engine.Labelled[*widget.Rack](nil).Need}
	}}}})
	cr, other := w.widget("listed", widget.Spec{Text: "lists"}), w.widget("lists", widget.Spec{Text: "lists"})
	w.awaitReady(cr, other)
	wakes := func(by string, woken ...*widget.Widget) {
		before := map[string]int{}
		for _, cr := range woken {
			before[cr.Name] = w.watched.of(cr.Name)
		}
		w.create(&widget.Rack{ObjectMeta: metaOf(w.namespace, by)})
		for _, cr := range woken {
			w.Eventually(func() int { return w.watched.of(cr.Name) }).Should(BeNumerically(">", before[cr.Name]), "%s wakes %s", by, cr.Name)
		}
	}
	wakes("first", cr, other)
	w.change(cr, func(s *widget.Spec) { s.Text = "does not" })
	w.awaitReady(cr)
	w.pass(cr)
	w.sees(cr)
	const racks = 20
	before := w.watched.of(cr.Name)
	for i := range racks {
		wakes(fmt.Sprintf("later-%d", i), other)
	}
	// Of the passes before, the last ones may wake it once more.
	w.Expect(w.watched.of(cr.Name)-before).To(BeNumerically("<", racks/2), "passes over what lists no racks, for %d racks", racks)
}

// TestListsAreInputs: the hash does not depend on the order of the cache, and lists of one kind
// are not mixed.
func TestListsAreInputs(t *testing.T) {
	w := newTestWorld(t)
	var calls atomic.Int32
	row := func(name string) engine.List[*widget.Rack] {
		return engine.Labelled[*widget.Rack](map[string]string{"row": name})
	}
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{
		Condition: "Listed",
		Needs: func(*widget.Widget) []engine.Need {
			return []engine.Need{row("a").Need, row("b").Need, engine.Sampled[*widget.Rack](time.Hour).Need}
		},
		Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
			calls.Add(1)
			return nil, nil
		},
		Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
			text := ""
			for _, list := range []engine.List[*widget.Rack]{row("a"), row("b"), row("c")} {
				for _, rack := range list.In(in) {
					text += rack.Name + " "
				}
				text += "| "
			}
			return []engine.Child{configMap(cr.Name, text)}, nil
		},
	}}})
	for name, row := range map[string]string{"one": "a", "two": "a", "three": "b", "four": "b", "five": "b"} {
		rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, name)}
		rack.Labels = map[string]string{"row": row}
		w.create(rack)
	}
	cr := w.widget("lists", widget.Spec{})
	w.Eventually(w.textOf(cr.Name)).Should(Equal("one two | five four three | | "))
	w.awaitReady(cr)
	before := calls.Load()
	for range 5 {
		w.pass(cr)
	}
	w.Expect(calls.Load()).To(Equal(before), "another order of the same racks does not call Do")
}

// TestSampledEverywhere finds objects of other namespaces, and Sampled does not.
func TestSampledEverywhere(t *testing.T) {
	w := newTestWorld(t)
	here, everywhere := engine.Sampled[*widget.Rack](time.Hour), engine.SampledEverywhere[*widget.Rack](0)
	isHere := func(rack *widget.Rack) bool { return rack.Name == w.namespace }
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{
		Condition: "Listed", Needs: func(*widget.Widget) []engine.Need { return []engine.Need{here.Need, everywhere.Need} },
		Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
			return []engine.Child{configMap(cr.Name, fmt.Sprint(slices.ContainsFunc(here.In(in), isHere), slices.ContainsFunc(everywhere.In(in), isHere)))}, nil
		},
	}}})
	rack := &widget.Rack{ObjectMeta: metaOf(metav1.NamespacePublic, w.namespace)}
	w.create(rack)
	t.Cleanup(func() { w.must(w.client.Delete(context.Background(), rack)) })
	cr := w.widget("lists", widget.Spec{})
	w.Eventually(w.textOf(cr.Name)).Should(Equal("false true"))
}

// TestNeedsOfChildrenAreJudged by the stage that needs them.
func TestNeedsOfChildrenAreJudged(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: []client.Object{&widget.Rack{}}, Stages: []stage{
		{Condition: "Described", Needs: func(cr *widget.Widget) []engine.Need {
			return []engine.Need{engine.Existing(&widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}).Where(func(obj client.Object) error {
				if text := obj.(*widget.Rack).Spec.Text; text != "oak" {
					return engine.Wait("the rack is made of %s", text)
				}
				return nil
			})}
		}},
	}})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, "where"), Spec: widget.Spec{Text: "steel"}}
	w.create(rack)
	cr := w.widget("where", widget.Spec{})
	w.Eventually(w.condition(cr, "Described")).Should(Equal("False Waiting: the rack is made of steel"))
	rack.Spec.Text = "oak"
	w.must(w.client.Update(w.ctx, rack))
	w.awaitReady(cr)
}

// TestAvailableIsJudgedAlways, also if the walk ends early, and is judged again when an input
// has changed.
func TestAvailableIsJudgedAlways(t *testing.T) {
	w := newTestWorld(t)
	var refuses atomic.Bool
	start(w, service{
		Name:   owner,
		Stages: []stage{{Condition: "Never", Needs: func(*widget.Widget) []engine.Need { return []engine.Need{engine.ConfigMap("never")} }}},
		Available: &stage{
			Needs: func(*widget.Widget) []engine.Need { return []engine.Need{engine.ConfigMap("address", "text")} },
			Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
				if refuses.Load() {
					return nil, engine.Fail("ServerFailed", errors.New("it answers 500"))
				}
				return nil, nil
			},
			Every: func(*widget.Widget) time.Duration { return 200 * time.Millisecond },
		},
	})
	cr := w.widget("serves", widget.Spec{})
	w.Eventually(w.condition(cr, "Available")).Should(HavePrefix("False Waiting: ConfigMap address does not exist"))
	address := w.configMap("address")
	address.Data = map[string]string{"text": "here"}
	w.create(address)
	w.Eventually(w.condition(cr, "Available")).Should(HavePrefix("True"))
	refuses.Store(true)
	w.Eventually(w.condition(cr, "Available")).Should(Equal("False ServerFailed: it answers 500"))
	w.Expect(w.condition(cr, "Ready")()).To(HavePrefix("False Waiting: ConfigMap never"), "Ready does not repeat it")
	refuses.Store(false)
	w.Eventually(w.condition(cr, "Available")).Should(HavePrefix("True"))
	w.must(w.get(cr))
	w.Expect(meta.FindStatusCondition(cr.Status.Conditions, "Ready").Status).To(Equal(metav1.ConditionFalse))
}

func TestNeedsThatAreNotWaitedFor(t *testing.T) {
	w := newTestWorld(t)
	unserved := schema.GroupVersionKind{Group: "unserved.example", Version: "v1", Kind: "Unserved"}
	start(w, service{Name: owner, Stages: []stage{{
		Condition: "ConfigReady",
		Needs: func(cr *widget.Widget) []engine.Need {
			rack := &widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
			return []engine.Need{
				engine.Cluster(), engine.Served(unserved).Optional(), engine.Existing(rack).Optional(),
				engine.AllOf(engine.Condition(rack, "Ready"), engine.ConfigMap("also", "key")).As("both"),
				engine.TrueFor(rack, "Ready", 2*time.Second).As("long"),
				engine.SecretOf(rack, func(obj client.Object) string { return obj.(*widget.Rack).Spec.SecretName }).As("named"),
			}
		},
		Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
			text := "text of the rack: "
			if rack, ok := engine.Get[*widget.Rack](in, cr.Name); ok {
				text += rack.Spec.Text
			}
			if in.Met("both") {
				text += ", both"
			} else if why := in.Unmet("both"); !strings.HasPrefix(why, "Rack "+cr.Name) && why != "ConfigMap also does not exist" {
				return nil, errors.New(why)
			}
			if in.Met("long") {
				text += ", for long"
			}
			if in.Met("named") {
				text += ", " + string(in.Secret("of-the-rack")["user"])
			}
			if in.Served(unserved) || in.Cluster() == "" {
				return nil, errors.New("that cannot be")
			}
			return []engine.Child{configMap(cr.Name, text)}, nil
		},
	}}})
	cr := w.widget("optional", widget.Spec{})
	w.Eventually(w.textOf(cr.Name)).Should(Equal("text of the rack: "))
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name), Spec: widget.Spec{Text: "oak", SecretName: "of-the-rack"}}
	w.create(rack)
	w.Eventually(w.textOf(cr.Name)).Should(Equal("text of the rack: oak"))
	also := w.configMap("also")
	also.Data = map[string]string{"key": "x"}
	w.create(also)
	w.play(rack, "True", "")
	w.Eventually(w.textOf(cr.Name)).Should(HavePrefix("text of the rack: oak, both"))
	w.Eventually(w.textOf(cr.Name)).Should(Equal("text of the rack: oak, both, for long"))
	secret := w.secret("of-the-rack")
	secret.StringData = map[string]string{"user": "rack"}
	w.create(secret)
	w.Eventually(w.textOf(cr.Name)).Should(Equal("text of the rack: oak, both, for long, rack"))
	w.must(w.client.Delete(w.ctx, rack))
	w.Eventually(w.textOf(cr.Name)).Should(Equal("text of the rack: "))
	w.awaitReady(cr)
}

// TestAnOptionalKindWakes when it is served; until then, no object asks again.
func TestAnOptionalKindWakes(t *testing.T) {
	w := newTestWorld(t)
	later := schema.GroupVersionKind{Group: w.namespace + ".test", Version: "v1", Kind: "Later"}
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{
		Condition: "ConfigReady",
		Needs:     func(*widget.Widget) []engine.Need { return []engine.Need{engine.Served(later).Optional()} },
		Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
			return []engine.Child{configMap(cr.Name, fmt.Sprint(in.Served(later)))}, nil
		},
	}}})
	cr := w.widget("optional", widget.Spec{})
	w.awaitReady(cr)
	w.Expect(w.textOf(cr.Name)()).To(Equal("false"))
	var passes int
	w.Eventually(func() bool { before := passes; passes = w.watched.of(cr.Name); return passes == before }).WithPolling(time.Second).Should(BeTrue(), "the widget is at rest")
	w.define(later)
	w.Eventually(w.textOf(cr.Name)).Should(Equal("true"))
	w.awaitReady(cr)
}

// TestACheckSeesWhatIsCounted: the order of both does not matter.
func TestACheckSeesWhatIsCounted(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{Condition: "Checked", Needs: func(cr *widget.Widget) []engine.Need {
		name := func(obj client.Object) any { return obj.GetName() }
		return []engine.Need{engine.Existing(&widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}).Counting(name).Where(func(obj client.Object) error {
			return engine.Wait("%s is narrow", obj.GetName())
		})}
	}}}})
	w.create(&widget.Rack{ObjectMeta: metaOf(w.namespace, "counted")})
	cr := w.widget("counted", widget.Spec{})
	w.decides(w.condition(cr, "Checked"), Equal("False Waiting: counted is narrow"), HavePrefix("True"), "the check")
}

// TestAnyOfNeedsThatOnlyASpecCanMeetIsStalled, and not if one of them may be met without it.
func TestAnyOfNeedsThatOnlyASpecCanMeetIsStalled(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{Condition: "InputsReady", Needs: func(cr *widget.Widget) []engine.Need {
		rack := engine.Existing(&widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: "rack"}})
		narrow := rack.Where(func(client.Object) error { return engine.Stop("Narrow", "the rack is narrow") })
		other := rack.Where(func(client.Object) error { return engine.Stop("Narrow", "the rack is small") })
		if cr.Spec.Text == "waits" {
			other = engine.Secret("none")
		}
		return []engine.Need{engine.AnyOf(narrow, other)}
	}}}})
	w.create(&widget.Rack{ObjectMeta: metaOf(w.namespace, "rack")})
	waits, stalls := w.widget("waits", widget.Spec{Text: "waits"}), w.widget("stalls", widget.Spec{})
	w.Eventually(w.condition(waits, "InputsReady")).Should(Equal("False Waiting: the rack is narrow; Secret none does not exist"))
	w.Expect(w.condition(waits, "Stalled")()).To(Equal("absent"))
	w.decides(w.condition(stalls, "InputsReady"), Equal("False Narrow: the rack is narrow; the rack is small"), HavePrefix("False Waiting"), "both stop")
	w.Expect(w.condition(stalls, "Stalled")()).To(HavePrefix("True Narrow"))
}

func TestAnyOfHasEachMessageOnce(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{{
		Condition: "InputsReady",
		Needs: func(*widget.Widget) []engine.Need {
			return []engine.Need{engine.AnyOf(
				engine.Secret("one", "key"), engine.AllOf(engine.Secret("one", "other-key")), engine.Secret("other"),
			)}
		},
	}}})
	cr := w.widget("once", widget.Spec{})
	w.Eventually(w.condition(cr, "InputsReady")).Should(Equal("False Waiting: Secret one does not exist; Secret other does not exist"))
}

// TestAnyOfIsLookedAtAgainAfterATime: no event reports the end of a duration.
func TestAnyOfIsLookedAtAgainAfterATime(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{{
		Condition: "ConfigReady",
		Needs: func(cr *widget.Widget) []engine.Need {
			rack := &widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
			return []engine.Need{engine.AnyOf(
				engine.AllOf(engine.Condition(rack, "Ready"), engine.ConfigMap("never", "key")),
				engine.TrueFor(rack, "Ready", 6*time.Second), // later than progress is written
			)}
		},
		Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
			return []engine.Child{configMap(cr.Name, "late")}, nil
		},
	}}})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, "any")}
	w.create(rack)
	cr := w.widget("any", widget.Spec{})
	w.Eventually(w.condition(cr, "Ready")).Should(HavePrefix("False Waiting: "))
	w.play(rack, "True", "")
	w.awaitReady(cr)
}

func TestOutcomesOfABuilder(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{{Condition: "Built", Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
		switch cr.Spec.Text {
		case "wait":
			return nil, engine.Wait("for %s", "rain")
		case "wrap":
			return nil, fmt.Errorf("cell %d: %w", 1, engine.Wait("for %s", "rain"))
		case "fail":
			return nil, engine.Fail("Unreachable", errors.New("no route"))
		case "error":
			return nil, errors.New("odd")
		}
		return []engine.Child{"not a child"}, nil
	}}}})
	for text, expected := range map[string]string{
		"wait": "False Waiting: for rain", "wrap": "False Waiting: cell 1: for rain",
		"fail": "False Unreachable: no route", "error": "False Error: odd",
		"else": "False Error: string is neither an apply configuration nor an object",
	} {
		cr := w.widget(text, widget.Spec{Text: text})
		w.Eventually(w.condition(cr, "Ready")).Should(Equal(expected))
	}
}

// TestOnceRunsAgainOnlyForDepends: other changes of the Job do not run it again.
func TestOnceRunsAgainOnlyForDepends(t *testing.T) {
	w := newTestWorld(t)
	enginetest.Kubelet{}.Start(t, w.namespace)
	start(w, service{Name: owner, Owns: []client.Object{&batchv1.Job{}, &corev1.ConfigMap{}}, Stages: []stage{
		build("SchemaReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Once(job(cr, cr.Name), cr.Spec.SecretName)}
		}),
		configMaps("ConfigReady"),
	}})
	cr := w.widget("depends", widget.Spec{Text: "first", SecretName: "one"})
	w.awaitReady(cr)
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(w.textOf(cr.Name)).Should(Equal("second"))
	w.awaitReady(cr)
	w.Expect(w.created(cr.Name)).To(Equal(1))
	w.change(cr, func(s *widget.Spec) { s.SecretName = "other" })
	w.Eventually(func() int { return w.created(cr.Name) }).Should(Equal(2))
	w.awaitReady(cr)
}

// TestAvailableOutlivesAnEdit: users are still served while a new spec is not observed.
func TestAvailableOutlivesAnEdit(t *testing.T) {
	w := newTestWorld(t)
	named := func(name string) *widget.Rack { return &widget.Rack{ObjectMeta: metaOf(w.namespace, name)} }
	start(w, service{
		Name: owner,
		Available: &stage{Needs: func(cr *widget.Widget) []engine.Need {
			return []engine.Need{engine.Condition(named(cr.Name), "Available")}
		}},
		Stages: []stage{configMaps("ConfigReady")},
	})
	rack := named("serves")
	w.create(rack)
	w.playCondition(rack, "Available", "True", "")
	cr := w.widget("serves", widget.Spec{})
	w.Eventually(w.condition(cr, "Available")).Should(HavePrefix("True"))
	rack.Spec.Text = "edited"
	w.must(w.client.Update(w.ctx, rack))
	w.Expect(rack.Status.ObservedGeneration).NotTo(Equal(rack.Generation))
	w.change(cr, func(s *widget.Spec) { s.Text = "looked at again" })
	w.awaitReady(cr)
	w.Expect(w.condition(cr, "Available")()).To(HavePrefix("True"))
}
