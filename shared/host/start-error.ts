/**
 * Something that keeps a cluster on this machine from starting and that a person can put right: the message is the one
 * line the terminal shows, and names what to do. Everything else is a fault of ours and keeps its stack.
 */
export class StartError extends Error {
  override readonly name = 'StartError';
}
