/** Promises of silence: kept, broken by a machine that stays away, or withdrawn. */
import { PLANNED_UNTIL_ANNOTATION } from '../shared/fleet/nodes/planned-silence.ts';
import { rfc3339 } from '../shared/kubernetes/rfc3339.ts';
import { type PeopleOptions, patchNode, repeatRandomly } from './people.ts';
import { oneOf } from './seeded-random.ts';

const MEAN_MS = 75_000;
const PROMISED_MAX_MS = 240_000;
/** Shares of promises that are withdrawn, and of machines that stay away longer than they promised. */
const WITHDRAWN_SHARE = 0.3;
const BROKEN_SHARE = 0.4;

export function promiseSilences(
  options: PeopleOptions & {
    /** Switches a machine off for a while. */
    readonly crash: (name: string, offMs: number) => void;
  },
): void {
  const { time, fraction, send, view, log, crash } = options;
  const annotate = (name: string, until: string | null) =>
    patchNode(send, name, { metadata: { annotations: { [PLANNED_UNTIL_ANNOTATION]: until } } });

  async function promise(): Promise<void> {
    const name = oneOf([...view.nodes.keys()], fraction);
    const promisedMs = 20_000 + fraction() * PROMISED_MAX_MS;
    const isWithdrawn = fraction() < WITHDRAWN_SHARE;
    const offMs = promisedMs * (fraction() < BROKEN_SHARE ? 3 : 0.8);
    if (name === undefined) return;
    const until = rfc3339(time.nowMs() + promisedMs);
    log(name, `is expected to be silent until ${until}`);
    const answer = await annotate(name, until);
    if (answer.status !== 200) return;
    crash(name, offMs);
    if (!isWithdrawn) return;
    await time.sleep(promisedMs * fraction());
    log(name, 'the promise is withdrawn');
    await annotate(name, null);
  }
  // Promises of several machines may overlap.
  void repeatRandomly(options, { leastMs: 1_000, meanMs: MEAN_MS }, async () => void promise());
}
