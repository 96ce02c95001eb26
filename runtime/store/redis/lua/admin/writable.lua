#!lua
-- writable: whether this server takes submits.  It does nothing: Redis refuses it in every state in which it refuses them.
return 1
