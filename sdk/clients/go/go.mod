module quiver.example/client

go 1.19
