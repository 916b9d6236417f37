// Flags of Node.js for `nodekeeper serve`. Objects of a request that is in flight survive a collection of the young
// generation, and are then garbage of the old one. With 16 MB instead of 8 a quarter less CPU is used, and 10 MB more.
// V8 collects its old generation when that has grown by 15 %. With its default growth, 500 machines need 310 MB.
// `--optimize-for-size` needs less memory, and twice the CPU for lists and watches: each collection is then one that
// reduces memory (docs/quality.md).
export const NODE_FLAGS = ['--max-semi-space-size=16', '--heap-growing-percent=15'];
