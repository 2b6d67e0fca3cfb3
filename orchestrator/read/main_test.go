package read_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/store/storetest/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, driver.Leaks()...) }
