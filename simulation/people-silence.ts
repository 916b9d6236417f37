/** Promises of silence: kept, broken by a machine that stays away, or withdrawn. */
import { PLANNED_UNTIL_ANNOTATION } from '../shared/domain/nodes/planned-silence.ts';
import { rfc3339 } from '../shared/domain/rfc3339.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Send } from './faults/faulty-network.ts';
import type { VirtualTime } from './virtual-time.ts';

const MEAN_MS = 75_000;
const PROMISED_MAX_MS = 240_000;
/** Shares of promises that are withdrawn, and of machines that stay away longer than they promised. */
const WITHDRAWN_SHARE = 0.3;
const BROKEN_SHARE = 0.4;

export function promiseSilences(options: {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly send: Send;
  readonly view: ClusterView;
  readonly tell: (subject: string, text: string) => void;
  /** Switches a machine off for a while. */
  readonly crash: (name: string, offMs: number) => void;
}): void {
  const { time, fraction, send, view, tell, crash } = options;
  const annotate = (name: string, until: string | null) =>
    send(
      {
        who: OPERATOR,
        method: 'PATCH',
        path: `/api/v1/nodes/${name}`,
        body: { metadata: { annotations: { [PLANNED_UNTIL_ANNOTATION]: until } } },
        contentType: 'application/merge-patch+json',
      },
      { isGone: () => false },
    );
  async function promise(): Promise<void> {
    const name = [...view.nodes.keys()][Math.floor(fraction() * view.nodes.size)];
    const promisedMs = 20_000 + fraction() * PROMISED_MAX_MS;
    const isWithdrawn = fraction() < WITHDRAWN_SHARE;
    const offMs = promisedMs * (fraction() < BROKEN_SHARE ? 3 : 0.8);
    if (name === undefined) return;
    const until = rfc3339(time.nowMs() + promisedMs);
    tell(name, `is expected to be silent until ${until}`);
    const answer = await annotate(name, until);
    if (answer.status !== 200) return;
    crash(name, offMs);
    if (!isWithdrawn) return;
    await time.sleep(promisedMs * fraction());
    tell(name, 'the promise is withdrawn');
    await annotate(name, null);
  }
  void (async () => {
    for (;;) {
      await time.sleep(1_000 - Math.log(1 - fraction()) * MEAN_MS);
      void promise();
    }
  })();
}
