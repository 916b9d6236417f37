/** Something that befell the node, for people who run `kubectl describe node`. */
export interface NodeEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}
