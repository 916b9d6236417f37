/** The Cloud port over EC2. A failed call makes the answers about its own ids `failed`; others are not affected. */
import type { Cloud, DetachOutcome } from '../../fleet/instances/cloud.ts';
import type { Ec2Api } from './api.ts';
import { callPacing } from './call-pacing.ts';
import { detachRefusalOf, failureOf } from './errors.ts';
import type { Ec2Account } from './found-instances.ts';
import { instanceDescriber } from './instances.ts';
import { volumeDescriber } from './volumes.ts';

export interface Ec2CloudOptions extends Ec2Account {
  /** Volumes of the cluster have this value in their tag `nodekeeper.dev/cluster`. */
  readonly clusterId: string;
  /** Maximum number of calls under way at one time. */
  readonly concurrencyMax?: number;
}

const CONCURRENCY_MAX = 4;

export function ec2Cloud({ clusterId, concurrencyMax = CONCURRENCY_MAX, ...account }: Ec2CloudOptions): Cloud {
  const pacing = callPacing(concurrencyMax);
  return {
    describeInstances: instanceDescriber(account, pacing),
    describeVolumes: volumeDescriber(account, clusterId, pacing),
    detachVolume: (request) => detachVolume(account.api, request),
  };
}

async function detachVolume(api: Ec2Api, request: Parameters<Cloud['detachVolume']>[0]): Promise<DetachOutcome> {
  try {
    await api.detachVolume(request);
    return { kind: 'detaching' };
  } catch (error) {
    const refusal = detachRefusalOf(error);
    if (refusal === undefined) return failureOf(error);
    return refusal.kind === 'notAttached' ? refusal : { ...refusal, message: (error as Error).message };
  }
}
