/**
 * People who change the label of a node that selects its profile, by mistake and back: the node has a wrong profile
 * then.
 */
import type { NodeProfile } from '../shared/fleet/policy.ts';
import { type PeopleOptions, patchNode, repeatRandomly } from './people.ts';
import { hashOf, oneOf } from './seeded-random.ts';

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

export function changeProfiles(options: PeopleOptions): void {
  const { fraction, send, view, log } = options;
  async function change(): Promise<void> {
    const name = oneOf([...view.nodes.keys()], fraction);
    const link = oneOf(LINKS, fraction)!;
    if (name === undefined) return;
    log(name, `a person sets the label ${LINK}=${link}`);
    await patchNode(send, name, { metadata: { labels: { [LINK]: link } } });
  }
  void repeatRandomly(options, { leastMs: 1_000, meanMs: MEAN_MS }, change);
}
