/** Answers about instances that need no call to EC2. Every implementation of the port Cloud uses them. */
import type { CloudAnswer } from './instance.ts';
import type { ConfirmationPlan } from './instance-confirmation.ts';
import { type Ec2Instance, instanceScope } from './provider-id.ts';

export interface RegionSplit {
  /** Instances to describe, each id once. */
  readonly ids: readonly string[];
  /** Answers about instances of other regions. */
  readonly foreign: ReadonlyMap<string, CloudAnswer>;
}

/** Separates the instances of our region from those of other regions. */
export function splitByRegion(
  instances: readonly Ec2Instance[],
  ours: { readonly region: string; readonly accountId: string },
): RegionSplit {
  const ids = new Set<string>();
  const foreign = new Map<string, CloudAnswer>();
  for (const { instanceId, region } of instances) {
    const scope = instanceScope({ region, accountId: undefined }, ours);
    if (scope.kind === 'foreign') foreign.set(instanceId, scope);
    else ids.add(instanceId);
  }
  return { ids: [...ids], foreign };
}

/** EC2 accepts the id of an instance but does not return the instance: another account owns it. */
export const hiddenInstance = (instanceId: string): CloudAnswer => ({
  kind: 'foreign',
  reason: `EC2 accepts the id ${instanceId} and does not return the instance: it is another account's instance`,
});

const NOT_CONFIRMED: CloudAnswer = {
  kind: 'failed',
  cause: 'throttled',
  message: 'EC2: many instances are missing from the answer by filter; a later pass requests this one by its id',
};

/** Answers about the missing instances that a pass does not request by id. */
export const unrequestedAnswers = ({
  foreign,
  later,
}: ConfirmationPlan): readonly (readonly [string, CloudAnswer])[] => [
  ...foreign.map((id) => [id, hiddenInstance(id)] as const),
  ...later.map((id) => [id, NOT_CONFIRMED] as const),
];
