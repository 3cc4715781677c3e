// Package protocol is the conversation between the client and the worker
// container: both ends, over any pipe.
//
// Each side writes JSON, one value a line. The worker speaks first:
//
//	worker  {"type":"hello","hello":{"protocol":1}}
//	client  {"op":"begin","begin":{…}}
//	worker  {"type":"progress","progress":{…}}      any number of times
//	worker  {"type":"warning","warning":{…}}        any number of times
//	worker  {"type":"result","result":{…}}          or an error, exactly once
//	client  {"op":"pass","pass":{…}}
//
// Requests are answered in turn. A backup is a session of several requests:
// begin, one pass or more, then publish or discard. Every other request stands alone.
// Volume data never crosses the pipe.
//
// The end of the client's stream means that the client is gone: the worker
// stops at the next block, drops what is unfinished and ends. That is also how
// a request is cancelled. The end of the worker's stream before a result means
// that the worker died.
//
// Lines are at most [MaxLine] bytes long. Progress comes at most ten times a second.
// Paths and names inside volumes are bytes, not text; the type [Path]
// carries them through JSON.
package protocol
