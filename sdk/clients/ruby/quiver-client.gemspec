Gem::Specification.new do |gem|
  gem.name = "quiver-client"
  gem.version = "0.2.0"
  gem.summary = "Client of Quiver: tasks that run in the order of their key, each once, none lost"
  gem.authors = ["The Quiver authors"]
  gem.files = Dir["lib/**/*.rb"] + ["README.md"]
  gem.required_ruby_version = ">= 3.0"
end
