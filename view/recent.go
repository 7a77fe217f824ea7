package view

import (
	"container/list"
	"iter"
)

// A recent is a map that keeps only the values that were touched last.
type recent[K comparable, V any] struct {
	most  int
	order *list.List // of *entry, the latest first
	byKey map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](most int) recent[K, V] {
	return recent[K, V]{most: most, order: list.New(), byKey: make(map[K]*list.Element)}
}

// get returns the value of a key.
func (r *recent[K, V]) get(key K) (value V, ok bool) {
	element, ok := r.byKey[key]
	if !ok {
		return value, false
	}
	return element.Value.(*entry[K, V]).value, true
}

// touch returns the value of a key and makes it the latest. If there is none, touch calls make.
func (r *recent[K, V]) touch(key K, make func() V) (value V, made bool) {
	if element, ok := r.byKey[key]; ok {
		r.order.MoveToFront(element)
		return element.Value.(*entry[K, V]).value, false
	}
	value = make()
	r.byKey[key] = r.order.PushFront(&entry[K, V]{key, value})
	if r.order.Len() > r.most {
		r.forget()
	}
	return value, true
}

// forget removes and returns the value that was touched least recently.
func (r *recent[K, V]) forget() (value V) {
	e := r.order.Remove(r.order.Back()).(*entry[K, V])
	delete(r.byKey, e.key)
	return e.value
}

// remove removes a key.
func (r *recent[K, V]) remove(key K) {
	if element, ok := r.byKey[key]; ok {
		r.order.Remove(element)
		delete(r.byKey, key)
	}
}

// all returns the values, the latest first.
func (r *recent[K, V]) all() iter.Seq[V] {
	return func(yield func(V) bool) {
		for element := r.order.Front(); element != nil; element = element.Next() {
			if !yield(element.Value.(*entry[K, V]).value) {
				return
			}
		}
	}
}
