package derive

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"
)

// functions are the functions of formulas, by name.
var functions = map[string]func(args []value) (value, error){
	"sum": sum, "total": sum, "add": sum, "product": product, "multiply": product,
	"difference": ofTwo(subtraction), "subtract": ofTwo(subtraction),
	"ratio": ofTwo(division), "quotient": ofTwo(division), "divide": ofTwo(division),
	"average": averageOf, "avg": averageOf, "mean": averageOf,
	"min": extremeOf(-1), "max": extremeOf(1), "count": count, "abs": absoluteValue, "round": round,
	"percent": percent, "percentage": percent, "change": change, "growth": change,
	"days": ofDays(func(from, to time.Time) value { return whole(daysBetween(from, to)) }),
	"months": ofDays(func(from, to time.Time) value {
		return whole(periodLength(from, to).months)
	}),
	"years": ofDays(func(from, to time.Time) value { return whole(spanBetween(from, to).months / 12) }),
	"duration": ofDays(func(from, to time.Time) value {
		s := periodLength(from, to)
		return value{span: &s}
	}),
	"year":    ofDay(func(day time.Time) value { return whole(int64(day.Year())) }),
	"quarter": ofDay(func(day time.Time) value { return whole(int64(day.Month()+2) / 3) }),
	"month":   ofDay(func(day time.Time) value { return whole(int64(day.Month())) }),
	"weekday": ofDay(func(day time.Time) value { return value{text: day.Weekday().String()} }),
}

// functionNames lists the functions for messages.
var functionNames = strings.Join(slices.Sorted(maps.Keys(ofNames)), ", ")

// ofNames are the functions that messages name: each once, by its plainest name.
var ofNames = map[string]bool{
	"sum": true, "product": true, "average": true, "min": true, "max": true, "count": true, "abs": true, "round": true,
	"percent": true, "change": true, "days": true, "months": true, "years": true, "duration": true,
	"year": true, "quarter": true, "month": true, "weekday": true,
}

func whole(n int64) value { return value{number: big.NewRat(n, 1)} }

// fold joins numbers by an operator, from left to right.
func fold(k kind, args []value) (value, error) {
	if len(args) == 0 {
		return value{}, errors.New("a function has nothing to compute with")
	}

	all := args[0]

	// All are looked at first, as the first one may be of another kind, too.
	for _, arg := range args {
		if arg.number == nil {
			return value{}, fmt.Errorf("a function of numbers has a %s", arg.kindName())
		}
	}

	for _, arg := range args[1:] {
		var err error
		if all, err = arithmetic(k, all.number, arg.number); err != nil {
			return value{}, err
		}
	}

	return all, nil
}

func sum(args []value) (value, error)     { return fold(addition, args) }
func product(args []value) (value, error) { return fold(multiplication, args) }

// ofTwo returns a function of two numbers.
func ofTwo(k kind) func([]value) (value, error) {
	return func(args []value) (value, error) {
		if len(args) != 2 {
			return value{}, errors.New("a function of two numbers has not two")
		}
		return fold(k, args)
	}
}

func averageOf(args []value) (value, error) {
	all, err := sum(args)
	if err != nil {
		return value{}, err
	}
	return arithmetic(division, all.number, big.NewRat(int64(len(args)), 1))
}

// extremeOf returns the function that finds the least, by -1, or the greatest of numbers or days.
func extremeOf(sign int) func([]value) (value, error) {
	return func(args []value) (value, error) {
		if len(args) == 0 {
			return value{}, errors.New("a function has nothing to choose from")
		}

		best := args[0]
		for _, arg := range args[1:] {
			more, err := compareValues(">", arg, best)
			if err != nil {
				return value{}, err
			}
			// For the least, what is not greater takes the place.
			if *more.truth == (sign > 0) {
				best = arg
			}
		}

		return best, nil
	}
}

func count(args []value) (value, error) { return whole(int64(len(args))), nil }

func absoluteValue(args []value) (value, error) {
	if len(args) != 1 || args[0].number == nil {
		return value{}, errors.New("abs needs one number")
	}
	return value{number: new(big.Rat).Abs(args[0].number)}, nil
}

// round rounds a number to so many decimals, or to a whole one; halves away from zero.
func round(args []value) (value, error) {
	if len(args) == 0 || len(args) > 2 || args[0].number == nil {
		return value{}, errors.New("round needs a number, and how many decimals it is to have")
	}

	decimals := int64(0)
	if len(args) == 2 {
		if !isWholeNumber(args[1]) || args[1].number.Num().Int64() < 0 || args[1].number.Num().Int64() > maxRounding {
			return value{}, fmt.Errorf("round needs from 0 to %d decimals", maxRounding)
		}
		decimals = args[1].number.Num().Int64()
	}

	rounded, _ := new(big.Rat).SetString(args[0].number.FloatString(int(decimals)))
	return value{number: rounded}, nil
}

// maxRounding is how many decimals a number may be rounded to.
const maxRounding = 12

// percent returns how many percent of the second number the first one is.
func percent(args []value) (value, error) {
	if len(args) != 2 {
		return value{}, errors.New("percent needs a part and the whole")
	}

	share, err := fold(division, args)
	if err != nil {
		return value{}, err
	}
	return arithmetic(multiplication, share.number, big.NewRat(100, 1))
}

// change returns by how many percent the second number is more than the first one.
func change(args []value) (value, error) {
	if len(args) != 2 || args[0].number == nil || args[1].number == nil {
		return value{}, errors.New("change needs the number before and the number after")
	}
	return percent([]value{{number: new(big.Rat).Sub(args[1].number, args[0].number)}, args[0]})
}

// ofDays returns a function of two days, of which the second is not before the first.
func ofDays(f func(from, to time.Time) value) func([]value) (value, error) {
	return func(args []value) (value, error) {
		if len(args) != 2 || args[0].day == nil || args[1].day == nil {
			return value{}, errors.New("a function of two dates has not two")
		}
		if args[1].day.Before(*args[0].day) {
			return value{}, fmt.Errorf("%s is before %s", args[1], args[0])
		}
		return f(*args[0].day, *args[1].day), nil
	}
}

// ofDay returns a function of a day.
func ofDay(f func(time.Time) value) func([]value) (value, error) {
	return func(args []value) (value, error) {
		if len(args) != 1 || args[0].day == nil {
			return value{}, errors.New("a function of a date has none")
		}
		return f(*args[0].day), nil
	}
}

// periodLength returns the length of a period. From the first day of one to the last of another it
// has whole months: a contract from 1 January to 31 December lasts a year.
func periodLength(from, to time.Time) span {
	s := spanBetween(from, to)
	if with := spanBetween(from, to.AddDate(0, 0, 1)); s.days > 0 && with.days == 0 {
		return with
	}
	return s
}
