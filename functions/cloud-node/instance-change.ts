/** EC2's event on the default bus after a state change of an instance. It may arrive late, twice or never. */

/** `detail-type` of the event. */
export const INSTANCE_CHANGE = 'EC2 Instance State-change Notification';

export interface InstanceChangeEvent {
  readonly 'detail-type': typeof INSTANCE_CHANGE;
  readonly detail: { readonly 'instance-id': string; readonly state: string };
}

export function isInstanceChange(event: unknown): event is InstanceChangeEvent {
  const { detail, 'detail-type': type } = (event ?? {}) as Partial<InstanceChangeEvent>;
  return type === INSTANCE_CHANGE && typeof detail?.['instance-id'] === 'string';
}
