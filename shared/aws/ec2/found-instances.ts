/** Instances as EC2 describes them, with their owner. */
import type { DescribedInstance, Ec2Api, InstancesPage } from './api.ts';
import type { Pass } from './call-pacing.ts';
import { type Described, describeByFilter, everyPage } from './describe-by-filter.ts';
import { Ec2Error, isUnknownInstance, MALFORMED_ANSWER } from './errors.ts';

/** EC2 in the account and region of the cluster. */
export interface Ec2Account {
  readonly api: Ec2Api;
  readonly region: string;
  readonly accountId: string;
}

export interface FoundInstance {
  readonly owner: string | undefined;
  readonly instance: DescribedInstance;
}

/**
 * Instances by filter. If a response has an instance of another owner, our credentials belong to another account than
 * configured. Then every instance that the response lacks has that owner too.
 */
export const findInstances = (
  { api, accountId }: Ec2Account,
  pass: Pass,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Described<FoundInstance>>> =>
  describeByFilter<FoundInstance>(pass, ids, async (values) => {
    const found = new Map<string, FoundInstance>();
    let otherOwner: string | undefined;
    await everyPage({ name: 'instance-id', values }, api.describeInstances, (page) => {
      for (const { OwnerId: owner, Instances } of reservationsOf(page)) {
        if (owner !== undefined && owner !== accountId) otherOwner = owner;
        for (const instance of Instances ?? []) {
          if (instance.InstanceId === undefined) throw new Ec2Error(MALFORMED_ANSWER, 'an instance without id');
          found.set(instance.InstanceId, { owner, instance });
        }
      }
    });
    if (otherOwner === undefined) return found;
    for (const id of values) if (!found.has(id)) found.set(id, { owner: otherOwner, instance: {} });
    return found;
  });

/**
 * One instance by its id. `unknown`: no account has it. `hidden`: EC2 accepts the id but returns no instance.
 *
 * @throws Ec2Error `MalformedAnswer`, and what the call throws
 */
export async function findInstance(api: Ec2Api, instanceId: string): Promise<FoundInstance | 'unknown' | 'hidden'> {
  let page: InstancesPage;
  try {
    page = await api.describeInstances({ instanceId });
  } catch (error) {
    if (isUnknownInstance(error)) return 'unknown';
    throw error;
  }
  const reservations = reservationsOf(page);
  // One instance fits one page. If there are more pages, the instance may be on a later one.
  if (page.NextToken) throw new Ec2Error(MALFORMED_ANSWER, 'more pages for one instance');
  const [found] = reservations.flatMap(({ OwnerId: owner, Instances = [] }) =>
    Instances.map((instance): FoundInstance => ({ owner, instance })),
  );
  if (found === undefined) return 'hidden';
  if (found.instance.InstanceId !== instanceId) throw new Ec2Error(MALFORMED_ANSWER, 'another instance');
  return found;
}

function reservationsOf({ Reservations }: InstancesPage): NonNullable<InstancesPage['Reservations']> {
  if (Reservations === undefined) throw new Ec2Error(MALFORMED_ANSWER, 'no reservations');
  return Reservations;
}
