module github.com/fenceline-dev/fenceline/migrations

go 1.26.0
