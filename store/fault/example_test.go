package fault_test

import (
	"context"
	"fmt"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

// A commit whose result is unknown is run again. Without a mark of its own the
// transaction would count twice.
func ExampleStore_FailNext() {
	ctx := context.Background()
	s := fault.New(new(memory.Store), fault.Config{Seed: 1})
	defer s.Close()
	db := store.NewDB(s, store.Config{})

	s.FailNext(fault.UnknownCommitted)
	runs := 0
	err := db.Update(ctx, func(tx store.Tx) error {
		runs++
		done, err := tx.Get(ctx, []byte("mark"))
		if err != nil || done != nil {
			return err
		}
		tx.Set([]byte("mark"), nil)
		tx.Add([]byte("count"), 1)
		return nil
	})
	fmt.Println(runs, "runs, error", err)

	err = db.View(ctx, func(tx store.Tx) error {
		count, err := tx.Get(ctx, []byte("count"))
		fmt.Println("counted", count[0])
		return err
	})
	fmt.Println("error", err)
	// Output:
	// 2 runs, error <nil>
	// counted 1
	// error <nil>
}
