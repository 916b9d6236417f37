/** Describes the instances of a CloudWorld in the steps of the EC2 adapter: by filter, then the missing ones by id. */
import {
  hiddenInstance,
  splitByRegion,
  unrequestedAnswers,
} from '../../shared/fleet/instances/answers-without-call.ts';
import type { Cloud, InstanceAnswer } from '../../shared/fleet/instances/cloud.ts';
import {
  type Confirmations,
  keepConfirmations,
  planConfirmations,
} from '../../shared/fleet/instances/instance-confirmation.ts';
import type { CallEach } from './cloud-calls.ts';
import type { CloudWorld, SeenInstance } from './cloud-world.ts';
import type { CloudFailure, PlannedFailures } from './planned-failures.ts';

export interface MemoryAccount {
  readonly world: CloudWorld;
  readonly region: string;
  readonly accountId: string;
}

export function instanceDescriber(
  account: MemoryAccount,
  callEach: CallEach,
  failures: PlannedFailures,
): Cloud['describeInstances'] {
  const { world, region, accountId } = account;
  const confirmMissing = missingInstanceConfirmer(world, callEach, failures);
  return async (instances) => {
    const { ids, foreign } = splitByRegion(instances, account);
    const answers = new Map<string, InstanceAnswer>();
    for (const [id, answer] of foreign) answers.set(id, { answer });
    if (ids.length === 0) return answers;
    const missing: string[] = [];
    let throttled: CloudFailure | undefined;
    const byFilter = callEach<SeenInstance | undefined>('describeInstances', ids, (id, momentMs) => {
      const seen = world.instance(id, momentMs);
      return seen?.accountId === accountId ? seen : undefined;
    });
    for (const [id, seen] of byFilter) {
      if (seen === undefined) missing.push(id);
      else if (!('kind' in seen)) answers.set(id, instanceAnswer(seen, region));
      else {
        answers.set(id, { answer: seen });
        if (seen.cause === 'throttled') throttled = seen;
      }
    }
    confirmMissing(missing, answers, throttled);
    return answers;
  };
}

/** Adds the answers about missing instances. It keeps between passes what is known about each of them. */
function missingInstanceConfirmer(world: CloudWorld, callEach: CallEach, failures: PlannedFailures) {
  let confirmations: Confirmations = new Map();
  let passes = 0;
  return (missing: readonly string[], answers: Map<string, InstanceAnswer>, throttled?: CloudFailure): void => {
    passes += 1;
    const plan = planConfirmations(missing, confirmations, passes);
    const before = failures.calls().describeInstances;
    const byId = callEach<InstanceAnswer>(
      'describeInstances',
      plan.requested,
      (id, momentMs) => ({
        answer: world.instance(id, momentMs) === undefined ? { kind: 'notFound' } : hiddenInstance(id),
      }),
      { idsPerCall: 1, throttled },
    );
    const requested = new Set(plan.requested.slice(0, failures.calls().describeInstances - before));
    for (const [id, answer] of byId) answers.set(id, 'kind' in answer ? { answer } : answer);
    for (const [id, answer] of unrequestedAnswers(plan)) answers.set(id, { answer });
    const kinds = [...answers].map(([id, { answer }]) => [id, answer.kind] as const);
    confirmations = keepConfirmations(confirmations, passes, kinds, requested);
  };
}

function instanceAnswer(seen: SeenInstance, region: string): InstanceAnswer {
  const { state, launchedAtMs, instanceType, zone, addresses } = seen;
  const answer = { kind: 'found', state, launchedAtMs } as const;
  if (state === 'terminated') return { answer };
  return { answer, metadata: { instanceType, zone, region, addresses, additionalLabels: {} } };
}
