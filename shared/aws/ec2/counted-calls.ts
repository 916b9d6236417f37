/** Counts the calls to EC2. EC2 throttles the account as a whole, so the number matters to all its users. */
import type { Meter } from '../../observability/log.ts';
import type { Ec2Api } from './api.ts';

export const CLOUD_CALLS = 'cloud_calls_total';

/** Counts each call at its start, whatever its outcome. A call that the SDK repeats counts once. */
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
