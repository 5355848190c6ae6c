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
					"cart.go":                  cartBefore,
					"config/limits.json":       "{\n  \"items\": 100,\n  \"currency\": \"EUR\"\n}\n",
					".github/workflows/ci.yml": ciBefore,
				},
			},
			{
				Branch: "checkout", Message: "Add checkout", AuthorName: "Grace", AuthorEmail: "grace@acme.test",
				Files: map[string]string{
					"cart.go":                  cartAfter,
					"checkout.go":              checkout,
					"config/limits.json":       "{\n  \"items\": 100,\n  \"currency\": \"EUR\",\n  \"discount\": 0.15,\n}\n",
					"config/payment.env":       "PAYMENT_URL=https://pay.acme.test\nDEPLOY_TOKEN=" + token + "\n",
					".github/workflows/ci.yml": ciAfter,
				},
			},
		},
	}
}

// token has the shape of one of GitHub's and opens nothing. It is put together here so that scanners of
// this source don't take it for one either.
const token = "ghp" + "_" + "Vq3mXo7RtKe9LdWu" + "Zb2JcHs5TnYf8GpA" + "1iQk"

const cartBefore = `package shop

// Total adds up a cart.
func Total(prices []int) int {
	sum := 0
	for _, p := range prices {
		sum += p
	}
	return sum
}
`

const cartAfter = `package shop

// Total adds up a cart.
func Total(prices []int) int {
	sum := 0
	for _, p := range prices {
<<<<<<< HEAD
		sum += p
=======
		sum += discounted(p)
>>>>>>> checkout
	}
	return sum
}
`

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
      - run: ./deploy --to ${{ github.reff }}
`
