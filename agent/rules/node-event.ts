/** An event about the Node or a pod, as `kubectl describe` shows it. */
export interface NodeEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}
