/**
 * NetworkPolicies on a machine with three pods, and one behind another machine: network namespaces with the rules of
 * nftables that the agent writes, and real connections.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nftPacketFilter } from '../../agent/adapters/services/nft.ts';
import { isolations } from '../../agent/rules/network-policy/isolations.ts';
import { policyTable } from '../../agent/rules/network-policy/policy-table.ts';
import { type NftState, nftUpdate } from '../../agent/rules/services/nft-table.ts';
import type { KubeNetworkPolicy, KubePod, NetworkPolicySpec } from '../../shared/kinds/types.ts';
import {
  type MachineNetwork,
  machineNetwork,
  missingNamespaces,
  type NetworkMachine,
} from '../support/machine-network.ts';

const missing = missingNamespaces();
const suite = missing === undefined ? describe : describe.skip;
const title =
  missing === undefined ? 'NetworkPolicies' : `NetworkPolicies (skipped: no network namespaces: ${missing})`;

const PORT = 8_080;
const OTHER_PORT = 8_081;
const WEB = '10.88.0.5';
const DB = '10.88.0.6';
const OTHER = '10.88.0.7';
/** What a client sees of a dropped packet. */
const LOST = 'ETIMEDOUT';

const pod = (name: string, ip: string): KubePod => ({
  metadata: { namespace: 'shop', name, labels: { app: name } },
  spec: { nodeName: 'node-0', containers: [{ name: 'c', ports: [{ name: 'http', containerPort: PORT }] }] },
  status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
});
const PODS = [pod('web', WEB), pod('db', DB), pod('other', OTHER)];
const policy = (spec: NetworkPolicySpec): KubeNetworkPolicy => ({ metadata: { namespace: 'shop', name: 'p' }, spec });
const named = (app: string) => ({ podSelector: { matchLabels: { app } } });

let network: MachineNetwork;
let pods: Readonly<Record<'web' | 'db' | 'other', NetworkMachine>>;
let state: NftState | undefined;

async function apply(...policies: readonly KubeNetworkPolicy[]): Promise<void> {
  const objects = { policies, pods: PODS, namespaces: [] };
  const place = { nodeName: 'node-0', family: 'ip', podNetworks: ['10.88.0.0/24'] } as const;
  const update = nftUpdate(state, policyTable('ip', isolations(objects, place).isolated));
  state = update.state;
  if (update.commands.length === 0) return;
  await nftPacketFilter(['ip', 'netns', 'exec', network.machines[0]!.namespace, 'nft']).apply(update.commands);
}

async function reached(client: NetworkMachine, server: string, port = PORT): Promise<string> {
  const [first = ''] = await client.connect(server, port);
  return first.split(' ')[0] ?? '';
}

suite(title, () => {
  beforeAll(async () => {
    network = machineNetwork(['10.11.0.1', '10.11.0.2']);
    const machine = network.machines[0]!;
    const [web, db, other] = [WEB, DB, OTHER].map((address) => network.addPod(machine, address, '10.88.0.1'));
    pods = { web: web!, db: db!, other: other! };
    for (const [name, each] of Object.entries(pods)) {
      await each.serve(PORT, name);
      await each.serve(OTHER_PORT, `${name}-other`);
    }
    await network.machines[1]!.serve(PORT, 'outside');
  });
  afterAll(() => network.close());

  it('filter nothing until one selects a pod, and then only for that pod', async () => {
    await apply();
    expect(await reached(pods.web, DB)).toBe('db');
    await apply(policy(named('db')));
    expect(await reached(pods.web, DB)).toBe(LOST);
    expect(await reached(pods.db, WEB)).toBe('web');
    expect(await reached(pods.web, OTHER)).toBe('other');
    // A pod reaches itself, and the machine reaches its pods.
    expect(await reached(pods.db, DB)).toBe('db');
    expect(await reached(network.machines[0]!, DB)).toBe('db');
  });

  it('allow peers by their labels, and ports by number, range and name', async () => {
    await apply(policy({ ...named('db'), ingress: [{ from: [named('web')], ports: [{ port: 'http' }] }] }));
    expect(await reached(pods.web, DB)).toBe('db');
    expect(await reached(pods.web, DB, OTHER_PORT)).toBe(LOST);
    expect(await reached(pods.other, DB)).toBe(LOST);
    await apply(
      policy({ ...named('db'), ingress: [{ ports: [{ protocol: 'TCP', port: PORT + 1, endPort: PORT + 9 }] }] }),
    );
    expect(await reached(pods.other, DB, OTHER_PORT)).toBe('db-other');
    expect(await reached(pods.other, DB)).toBe(LOST);
  });

  it('filter what leaves a pod, also to other machines, by address blocks', async () => {
    const egress = (except: string[]) =>
      policy({
        ...named('web'),
        policyTypes: ['Egress'],
        egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8', except } }] }],
      });
    await apply(egress(['10.88.0.6/32']));
    expect(await reached(pods.web, '10.11.0.2')).toBe('outside');
    expect(await reached(pods.web, OTHER)).toBe('other');
    expect(await reached(pods.web, DB)).toBe(LOST);
    await apply(egress(['10.11.0.0/24']));
    expect(await reached(pods.web, '10.11.0.2')).toBe(LOST);
    expect(await reached(pods.web, DB)).toBe('db');
    await apply();
    expect(await reached(pods.web, '10.11.0.2')).toBe('outside');
  });
});
