package demo

import "github.com/fenceline-dev/fenceline/deploy/githubsim/control"

// sample is the small repository that is reviewed when no other is named: a shop, and a branch on which
// five things went wrong.
func sample() control.NewRepository {
	return control.NewRepository{
		Owner: "acme", Name: "shop", DefaultBranch: "main",
		Commits: []control.Commit{
			{
				Message: "Open the shop", AuthorName: "Ada", AuthorEmail: "ada@acme.test",
				Files: map[string]string{
					"README.md":                "# Shop\n\nSells things.\n",
					"go.mod":                   "module acme.test/shop\n\ngo 1.26\n",
					"cart.go":                  cart,
					"config/prices.csv":        "item,cents\nbook,1200\nlamp,3500\n",
					"config/limits.json":       "{\n  \"items\": 100,\n  \"currency\": \"EUR\"\n}\n",
					".github/workflows/ci.yml": ciBefore,
				},
			},
			{
				Branch: "checkout", Message: "Add checkout", AuthorName: "Grace", AuthorEmail: "grace@acme.test",
				Files: map[string]string{
					"checkout.go":              checkout,
					"config/prices.csv":        prices,
					"config/limits.json":       "{\n  \"items\": 100,\n  \"currency\": \"EUR\"\n  \"discount\": 0.15\n}\n",
					"config/payment.env":       "PAYMENT_URL=https://pay.acme.test\nDEPLOY_TOKEN=" + token + "\n",
					".github/workflows/ci.yml": ciAfter,
				},
			},
		},
	}
}

// expected are the rules that the made branch breaks.
var expected = []string{"conflict/marker", "go/syntax", "json/syntax", "secret/github-token", "workflow/job-needs"}

// token has the shape of one of GitHub's and opens nothing. It is put together here so that scanners of
// this source don't take it for one either.
const token = "ghp" + "_" + "Vq3mXo7RtKe9LdWu" + "Zb2JcHs5TnYf8GpA" + "1iQk"

const cart = `package shop

// Total adds up a cart.
func Total(prices []int) int {
	sum := 0
	for _, p := range prices {
		sum += p
	}
	return sum
}
`

// prices holds a conflict that was committed. Its markers are put together for the same reason.
const prices = "item,cents\n" +
	"<<<<<" + "<< HEAD\nbook,1200\n=====" + "==\nbook,1400\n>>>>>" + ">> checkout\n" +
	"lamp,3500\n"

const checkout = `package shop

import "errors"

// Checkout pays for a cart.
func Checkout(prices []int) error {
	if len(prices) == 0 {
		return errors.New("the cart is empty")
	}
	total := Total(prices
	return pay(total)
}
`

const ciBefore = `name: ci
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: go test ./...
`

const ciAfter = `name: ci
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: go test ./...
  deploy:
    needs: [tests]
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: ./deploy
`
