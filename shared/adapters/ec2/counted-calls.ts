/** EC2's calls with a count: throttling is by the account, so everybody's calls are everybody's business. */
import type { Meter } from '../../ports/log.ts';
import type { Ec2Api } from './api.ts';

export const CLOUD_CALLS = 'cloud_calls_total';

/** Counts each call when it is made, whatever becomes of it; what the API itself tries again counts once. */
export function countedCalls(api: Ec2Api, meter: Meter): Ec2Api {
  const counted =
    <Input, Output>(call: (input: Input) => Promise<Output>) =>
    (input: Input): Promise<Output> => {
      meter.add(CLOUD_CALLS, 1, 'Count');
      return call(input);
    };
  return {
    describeInstances: counted((input) => api.describeInstances(input)),
    describeVolumes: counted((input) => api.describeVolumes(input)),
    detachVolume: counted((input) => api.detachVolume(input)),
  };
}
