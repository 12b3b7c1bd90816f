package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	secretGVK    = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapGVK = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	namespaceGVK = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// isDataKind says which kinds are watched as metadata only and read by name.
func isDataKind(gvk schema.GroupVersionKind) bool { return gvk == secretGVK || gvk == configMapGVK }

// observer reads the cluster for one controller and knows whom to wake: every
// object that somebody looked at in its last pass, and every child by its
// owner's UID. Watches start when something of a kind is first looked at.
type observer struct {
	limits
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	informers cache.Informers // nil: nothing is watched
	cache     client.Reader   // what the informers have seen
	live      client.Reader
	queue     queue           // of the controller
	lifetime  context.Context //nolint:containedctx // of the controller; watches end with it

	mu       sync.Mutex
	cluster  string
	subjects map[reconcile.Request]*subject
	owners   map[types.UID]*subject
	readers  map[ref]subjects
	listers  map[schema.GroupVersionKind]map[*subject]bool
	written  map[objectKey]written
	asked    map[objectKey]string // the version that the watch has shown since, "" if none
	contents map[objectKey]content
	watches  map[schema.GroupVersionKind]*watch
	absent   map[schema.GroupVersionKind]time.Time
	scopes   map[schema.GroupVersionKind]bool // whether a kind has namespaces
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// watch of one kind. It is ready when the cache is filled and our handler is
// attached, so that no event after a read can be missed.
type watch struct {
	ready chan struct{}
	since time.Time
	err   error // read it when ready is closed
}

// written is our own last write of an object which its watch has not shown yet.
type written struct {
	version string
	answer  client.Object // as the server answered; nil: not known
	created bool
	at      time.Time
}

// answerFor is how long the server's answer to a write stands for the object
// while the watch is behind. A watch that is cut off may miss its end.
const answerFor = 2 * time.Second

// subject is what is known about one object that the controller reconciles, or
// about the owner of children that nobody has asked for, which has no request.
type subject struct {
	request  reconcile.Request
	uid      types.UID
	looked   []ref // in its last pass
	children []child
}

// subjects is a set, mostly of one: maps of one would take more room than all
// that is cached.
type subjects struct {
	one  *subject
	more map[*subject]bool
}

func (all subjects) with(s *subject) subjects {
	switch {
	case all.one == s || all.more[s]:
	case all.one == nil:
		all.one = s
	case all.more == nil:
		all.more = map[*subject]bool{s: true}
	default:
		all.more[s] = true
	}
	return all
}

func (all subjects) without(s *subject) subjects {
	delete(all.more, s)
	if all.one == s {
		all.one = nil
	}
	return all
}

func (all subjects) size() int {
	if all.one == nil {
		return len(all.more)
	}
	return len(all.more) + 1
}

func (all subjects) each(do func(reconcile.Request)) {
	if all.one != nil {
		do(all.one.request)
	}
	for s := range all.more {
		do(s.request)
	}
}

// ref is an objectKey in half the room: there are several for every object.
type ref struct {
	kind unique.Handle[schema.GroupVersionKind]
	types.NamespacedName
}

func refOf(key objectKey) ref {
	return ref{kind: unique.Make(key.gvk), NamespacedName: key.NamespacedName}
}

func (r ref) key() objectKey {
	return objectKey{gvk: r.kind.Value(), NamespacedName: r.NamespacedName}
}

// child as the index has it.
type child struct {
	ref    ref
	labels unique.Handle[childLabels]
}

// childLabels is what the index remembers of a child.
type childLabels struct {
	stage   string
	runOf   string
	lingers bool
}

// content is the data of one version of a Secret or ConfigMap.
type content struct {
	uid     types.UID
	version string
	data    map[string][]byte
}

func newObserver(l limits, scheme *runtime.Scheme, mapper meta.RESTMapper, informers cache.Informers, cached, live client.Reader) *observer {
	return &observer{
		limits: l, scheme: scheme, mapper: mapper, informers: informers, cache: cached, live: live,
		subjects: map[reconcile.Request]*subject{},
		owners:   map[types.UID]*subject{},
		readers:  map[ref]subjects{},
		listers:  map[schema.GroupVersionKind]map[*subject]bool{},
		written:  map[objectKey]written{},
		asked:    map[objectKey]string{},
		contents: map[objectKey]content{},
		watches:  map[schema.GroupVersionKind]*watch{},
		absent:   map[schema.GroupVersionKind]time.Time{},
		scopes:   map[schema.GroupVersionKind]bool{},
	}
}

// begin is a source of the controller: it is called once, before the first pass.
func (o *observer) begin(ctx context.Context, q queue) error {
	o.lifetime, o.queue = ctx, q
	return nil
}

// get returns the object as its watch has it, or, while the watch is behind our
// own last write, as that was answered or is read live; nil if it is absent. Secrets and ConfigMaps come
// as metadata.
func (o *observer) get(ctx context.Context, reader reconcile.Request, key objectKey) (client.Object, error) {
	o.record(reader, key)
	if err := o.watch(ctx, key.gvk); err != nil {
		return nil, err
	}
	return o.freshest(ctx, key)
}

// freshest reads an object whose kind is watched. What is remembered is looked up
// first: what is forgotten while the cache is read, the copy may not have.
func (o *observer) freshest(ctx context.Context, key objectKey) (client.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, o.readTimeout)
	defer cancel()
	last, wrote := o.lastWrite(key)
	cached, err := o.read(ctx, o.cache, key)
	if err != nil {
		return nil, err
	}
	if !wrote {
		return cached, nil
	}
	if cached != nil && !older(cached.GetResourceVersion(), last.version) {
		o.forgetWrite(key, last.version)
		return cached, nil
	}
	if last.answer != nil && (cached != nil || last.created) && time.Since(last.at) < answerFor {
		return last.answer, nil
	}
	fresh, err := o.read(ctx, o.live, key)
	if err == nil && fresh == nil {
		o.forgetWrite(key, last.version)
	}
	return fresh, err
}

func (o *observer) read(ctx context.Context, from client.Reader, key objectKey) (client.Object, error) {
	obj, err := o.newObject(key.gvk)
	if err != nil {
		return nil, err
	}
	switch err := from.Get(ctx, key.NamespacedName, obj); {
	case errors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absence is an answer, not an error
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(key.gvk)
	return obj, nil
}

func (o *observer) newObject(gvk schema.GroupVersionKind) (client.Object, error) {
	if isDataKind(gvk) {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(gvk)
		return obj, nil
	}
	typed, err := o.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	obj, ok := typed.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", gvk.Kind)
	}
	return obj, nil
}

func (o *observer) lastWrite(key objectKey) (last written, yes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, yes = o.written[key]
	return last, yes
}

func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// ask the server for something whose answer may be ahead of the watch, and remember the
// answer until the watch has shown it. That may have happened when the answer comes.
// Nobody changes it afterwards.
func (o *observer) ask(key objectKey, send func() (written, error)) error {
	o.mu.Lock()
	o.asked[key] = ""
	o.mu.Unlock()
	var answer written
	defer func() { // also of a panic
		o.mu.Lock()
		defer o.mu.Unlock()
		shown := o.asked[key]
		delete(o.asked, key)
		if answer.version == "" || shown != "" && !older(shown, answer.version) {
			return
		}
		if last, ok := o.written[key]; !ok || older(last.version, answer.version) {
			answer.at = time.Now()
			o.written[key] = answer
		}
	}()
	var err error
	answer, err = send()
	return err
}

func answered(obj client.Object) written {
	return written{version: obj.GetResourceVersion(), answer: obj}
}

// made puts a child that we wrote into the index before its watch does.
func (o *observer) made(owner types.UID, key objectKey, labels map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.index(owner, key, labels, false)
}

// forgetWrite of that version: another pass may have written since.
func (o *observer) forgetWrite(key objectKey, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.written[key].version == version {
		drop(&o.written, key)
	}
}

// list returns the objects of a kind with the labels, from the cache, and wakes
// the reader when any object of the kind in its namespace changes.
func (o *observer) list(ctx context.Context, reader reconcile.Request, gvk schema.GroupVersionKind, namespace string, labels map[string]string) ([]client.Object, error) {
	o.mu.Lock()
	if o.listers[gvk] == nil {
		o.listers[gvk] = map[*subject]bool{}
	}
	o.listers[gvk][o.subject(reader)] = true
	o.mu.Unlock()
	return o.cached(ctx, gvk, namespace, labels)
}

// cached lists without asking to be woken.
func (o *observer) cached(ctx context.Context, gvk schema.GroupVersionKind, namespace string, labels map[string]string) ([]client.Object, error) {
	if err := o.watch(ctx, gvk); err != nil {
		return nil, err
	}
	typed, err := o.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	found, ok := typed.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%sList is not a list", gvk.Kind)
	}
	ctx, cancel := context.WithTimeout(ctx, o.readTimeout)
	defer cancel()
	if err := o.cache.List(ctx, found, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	items, err := meta.ExtractList(found)
	if err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		if obj, ok := item.(client.Object); ok {
			objects = append(objects, obj)
		}
	}
	return objects, nil
}

// data returns the content of a Secret or ConfigMap, read once per version;
// current is its metadata. nil: it is gone.
func (o *observer) data(ctx context.Context, key objectKey, current client.Object) (map[string][]byte, error) {
	o.mu.Lock()
	known, ok := o.contents[key]
	o.mu.Unlock()
	if ok && known.uid == current.GetUID() && !older(known.version, current.GetResourceVersion()) {
		return known.data, nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.readTimeout)
	defer cancel()
	fresh, err := o.readData(ctx, key)
	if errors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.contents[key] = fresh
	return fresh.data, nil
}

func (o *observer) readData(ctx context.Context, key objectKey) (content, error) {
	if key.gvk == secretGVK {
		var secret corev1.Secret
		err := o.live.Get(ctx, key.NamespacedName, &secret)
		if secret.Data == nil {
			secret.Data = map[string][]byte{} // nil would be one that is gone
		}
		return content{uid: secret.UID, version: secret.ResourceVersion, data: secret.Data}, err
	}
	var configMap corev1.ConfigMap
	err := o.live.Get(ctx, key.NamespacedName, &configMap)
	data := map[string][]byte{}
	for name, text := range configMap.Data {
		data[name] = []byte(text)
	}
	for name, bytes := range configMap.BinaryData {
		data[name] = bytes
	}
	return content{uid: configMap.UID, version: configMap.ResourceVersion, data: data}, err
}

// serves returns a NoMatch error for a kind that the API server does not serve.
// The answer no is kept for a while, because it costs two requests.
func (o *observer) serves(gvk schema.GroupVersionKind) error {
	o.mu.Lock()
	since, known := o.absent[gvk]
	watched := o.watches[gvk] != nil
	o.mu.Unlock()
	if watched {
		return nil
	}
	if known && time.Since(since) < o.discoveryRetry {
		return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	_, err := o.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	o.mu.Lock()
	defer o.mu.Unlock()
	if meta.IsNoMatchError(err) {
		o.absent[gvk] = time.Now()
	} else {
		delete(o.absent, gvk)
	}
	return err
}

func (o *observer) namespaced(gvk schema.GroupVersionKind) bool {
	o.mu.Lock()
	known, ok := o.scopes[gvk]
	o.mu.Unlock()
	if ok {
		return known
	}
	if o.serves(gvk) != nil {
		return true // discovery costs requests; the children of most kinds are namespaced
	}
	mapping, err := o.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.scopes[gvk] = mapping.Scope.Name() == meta.RESTScopeNameNamespace // which never changes
	return o.scopes[gvk]
}

// watch makes sure that the kind is watched, which starts on its first use.
func (o *observer) watch(ctx context.Context, gvk schema.GroupVersionKind) error {
	if err := o.serves(gvk); err != nil {
		if meta.IsNoMatchError(err) {
			return notServed(gvk, o.discoveryRetry)
		}
		return fmt.Errorf("discovering %s: %w", gvk.Kind, err)
	}
	if o.informers == nil {
		return nil
	}
	o.mu.Lock()
	w := o.watches[gvk]
	if w == nil {
		w = &watch{ready: make(chan struct{}), since: time.Now()}
		o.watches[gvk] = w
		go o.start(gvk, w)
	}
	o.mu.Unlock()
	select {
	case <-w.ready:
		return w.err
	default:
	}
	// A watch that is forbidden never gets ready: whoever comes later does not
	// wait for it again.
	limit := time.NewTimer(time.Until(w.since.Add(o.readTimeout)))
	defer limit.Stop()
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return fmt.Errorf("%s cannot be watched: has the operator the rights to list and watch it?", gvk.Kind)
	}
}

func (o *observer) start(gvk schema.GroupVersionKind, w *watch) {
	defer close(w.ready)
	obj, err := o.newObject(gvk)
	if err == nil {
		err = o.attach(gvk, obj)
	}
	if err != nil {
		w.err = fmt.Errorf("watching %s: %w", gvk.Kind, err)
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.watches, gvk)
	}
}

// attach returns when the kind's cache is filled and its events wake readers.
func (o *observer) attach(gvk schema.GroupVersionKind, obj client.Object) error {
	informer, err := o.informers.GetInformer(o.lifetime, obj)
	if err != nil {
		return err
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { o.wake(gvk, obj, false) },
		UpdateFunc: func(_, obj any) { o.wake(gvk, obj, false) },
		DeleteFunc: func(obj any) { o.wake(gvk, obj, true) },
	})
	if err != nil {
		return err
	}
	// Until the handler has seen what there is, the index of children lacks some.
	for !handler.HasSynced() {
		select {
		case <-o.lifetime.Done():
			return o.lifetime.Err()
		case <-time.After(handlerSync):
		}
	}
	return nil
}

// handlerSync is how often it is looked whether a handler has seen everything.
const handlerSync = 5 * time.Millisecond

// wake queues everybody who looked at the object, and its owner.
func (o *observer) wake(gvk schema.GroupVersionKind, event any, deleted bool) {
	if unknown, ok := event.(toolscache.DeletedFinalStateUnknown); ok {
		event = unknown.Obj
	}
	obj, ok := event.(client.Object)
	if !ok {
		return
	}
	key := objectKey{gvk: gvk, NamespacedName: client.ObjectKeyFromObject(obj)}
	o.mu.Lock()
	defer o.mu.Unlock()
	labels := obj.GetLabels()
	if owner := ownerUID(obj); marked(obj) {
		o.index(owner, key, labels, deleted)
		if known := o.owners[owner]; known != nil && known.isOurs() {
			o.queue.Add(known.request)
		}
	}
	if deleted {
		delete(o.contents, key)
	}
	o.shown(key, obj.GetResourceVersion())
	o.readers[refOf(key)].each(o.queue.Add)
	for lister := range o.listers[gvk] {
		request := lister.request
		if request.Namespace == obj.GetNamespace() || request.Namespace == "" || obj.GetNamespace() == "" {
			o.queue.Add(request)
		}
	}
}

// shown is called for what a watch shows, with mu held.
func (o *observer) shown(key objectKey, version string) {
	if last, ok := o.written[key]; ok && !older(version, last.version) {
		drop(&o.written, key)
	}
	if _, ok := o.asked[key]; ok {
		o.asked[key] = version
	}
}

// notice is a predicate of the watch of the objects that are reconciled: all pass.
func (o *observer) notice(gvk schema.GroupVersionKind) predicate.Funcs {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.shown(objectKey{gvk: gvk, NamespacedName: client.ObjectKeyFromObject(obj)}, obj.GetResourceVersion())
		return true
	})
}

func (o *observer) index(owner types.UID, key objectKey, labels map[string]string, deleted bool) {
	s := o.owners[owner]
	if s == nil {
		s = &subject{uid: owner}
		o.owners[owner] = s
	}
	marks := childLabels{stage: labels[labelStage], runOf: labels[labelRunOf], lingers: labels[labelLingers] != ""}
	now := child{ref: refOf(key), labels: unique.Make(marks)}
	at := slices.IndexFunc(s.children, func(c child) bool { return c.ref == now.ref })
	switch {
	case !deleted && at < 0:
		s.children = append(s.children, now)
	case !deleted:
		s.children[at] = now
	case at >= 0:
		s.children = slices.Delete(s.children, at, at+1)
	}
	if len(s.children) == 0 && !s.isOurs() {
		delete(o.owners, owner)
	}
}

// childrenOf returns what the watches have shown of an owner's children.
func (o *observer) childrenOf(owner types.UID) map[objectKey]childLabels {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := map[objectKey]childLabels{}
	if s := o.owners[owner]; s != nil {
		for _, c := range s.children {
			found[c.ref.key()] = c.labels.Value()
		}
	}
	return found
}

// record must come before the read that it announces, so that no event is lost.
func (o *observer) record(reader reconcile.Request, key objectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, object := o.subject(reader), refOf(key)
	if slices.Contains(s.looked, object) {
		return
	}
	o.readers[object] = o.readers[object].with(s)
	s.looked = append(s.looked, object)
}

// settle keeps of a reader's records only what its pass looked at.
func (o *observer) settle(reader reconcile.Request, seen map[objectKey]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.subjects[reader]; s != nil {
		o.keep(s, seen)
	}
}

func (o *observer) keep(s *subject, seen map[objectKey]bool) {
	kept := s.looked[:0]
	for _, object := range s.looked {
		key := object.key()
		if seen[key] {
			kept = append(kept, object)
			continue
		}
		o.readers[object] = o.readers[object].without(s)
		if o.readers[object].size() == 0 {
			delete(o.readers, object)
			delete(o.contents, key)
		}
	}
	s.looked = exactly(kept)
}

// exactly is the slice without room to grow.
func exactly(all []ref) []ref {
	if len(all) == cap(all) {
		return all
	}
	return append(make([]ref, 0, len(all)), all...)
}

// subject of a request, which is known from its first pass on.
func (o *observer) subject(request reconcile.Request) *subject {
	s := o.subjects[request]
	if s == nil {
		s = &subject{request: request}
		o.subjects[request] = s
	}
	return s
}

func (s *subject) isOurs() bool { return s.request != (reconcile.Request{}) }

// own makes the events of an owner's children wake it.
func (o *observer) own(owner types.UID, request reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.subject(request)
	if s.uid == owner {
		return
	}
	delete(o.owners, s.uid) // which had the same name
	s.uid, s.children = owner, nil
	if before := o.owners[owner]; before != nil {
		s.children = before.children // that their watch has shown already
	}
	o.owners[owner] = s
}

// forget drops everything about an object that is gone.
func (o *observer) forget(request reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.subjects[request]
	if s == nil {
		return
	}
	o.keep(s, nil)
	delete(o.subjects, request)
	delete(o.owners, s.uid)
	for _, listers := range o.listers {
		delete(listers, s)
	}
}

func newOf[O client.Object]() O {
	return reflect.New(reflect.TypeFor[O]().Elem()).Interface().(O) //nolint:forcetypeassert // O is what was made
}

func kindOf(scheme *runtime.Scheme, obj client.Object) schema.GroupVersionKind {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		panic(fmt.Sprintf("%T is not in the scheme: %v", obj, err)) //nolint:forbidigo // a bug that the first pass shows
	}
	return gvk
}

func objectMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
