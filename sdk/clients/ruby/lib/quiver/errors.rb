# frozen_string_literal: true

# What a client raises: each says whether the same call may be made again.
module Quiver
  class Error < StandardError; end

  # Nothing was stored, and the same call will be refused again.
  class Refused < Error
    attr_reader :status, :id # of the answer; of the task that is there already (409)

    def initialize(text, status = 400, id = nil)
      super(text)
      @status = status
      @id = id
    end
  end

  # Nothing was stored; the same call may succeed later.
  class Retry < Error; end

  # Whether it was stored is not known: only a call with an idempotency key may be repeated without a second task.
  class Unknown < Error; end
end
