/** People who change the label of a node that selects its profile, by mistake and back: the node has a wrong profile then. */
import type { NodeProfile } from '../shared/domain/policy.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Send } from './faults/faulty-network.ts';
import { hashOf } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

const LINK = 'sim.nodekeeper.dev/link';
const LINKS = ['cell', 'fibre', 'wire'] as const;
const MEAN_MS = 90_000;

const matching = (link: string) => ({ matchLabels: { [LINK]: link } });

/** A patient and a strict profile; machines on a wire have the times of the policy. */
export const SIM_PROFILES: readonly NodeProfile[] = [
  {
    name: 'cell',
    nodeSelector: matching('cell'),
    beatIntervalSeconds: 40,
    leaseDurationSeconds: 120,
    nodeMonitorGracePeriodSeconds: 120,
    nodeStartupGracePeriodSeconds: 130,
  },
  {
    name: 'fibre',
    nodeSelector: matching('fibre'),
    beatIntervalSeconds: 5,
    leaseDurationSeconds: 20,
    nodeMonitorGracePeriodSeconds: 30,
  },
];

export const linkLabels = (seed: number, name: string): Readonly<Record<string, string>> => ({
  [LINK]: LINKS[hashOf(`${seed} link of ${name}`) % LINKS.length]!,
});

export function changeProfiles(options: {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly send: Send;
  readonly view: ClusterView;
  readonly tell: (subject: string, text: string) => void;
}): void {
  const { time, fraction, send, view, tell } = options;
  const oneOf = <T>(things: readonly T[]): T | undefined => things[Math.floor(fraction() * things.length)];
  async function change(): Promise<void> {
    const name = oneOf([...view.nodes.keys()]);
    const link = oneOf(LINKS)!;
    if (name === undefined) return;
    tell(name, `a person sets the label ${LINK}=${link}`);
    const request = {
      who: OPERATOR,
      method: 'PATCH',
      path: `/api/v1/nodes/${name}`,
      body: { metadata: { labels: { [LINK]: link } } },
      contentType: 'application/merge-patch+json',
    };
    await send(request, { isGone: () => false });
  }
  void (async () => {
    for (;;) {
      await time.sleep(1_000 - Math.log(1 - fraction()) * MEAN_MS);
      await change();
    }
  })();
}
