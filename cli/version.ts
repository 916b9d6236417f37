/**
 * nodekeeper version [--check]
 *
 * The release of this program. `--check` compares it with that of the cluster and of its machines.
 */
import { parseArgs } from 'node:util';
import { NODEKEEPER_VERSION } from '../shared/config/version.ts';
import { KUBERNETES_VERSION } from '../shared/kinds/generated/version.ts';
import { type SendToApi, sendToApi } from './api-request.ts';
import { CommandError, type CommandIo } from './command.ts';
import { type ApiAccess, apiAccess } from './kubeconfig.ts';

export const VERSION_USAGE = [
  'nodekeeper version [--check]    with --check it compares the releases of this program, the cluster and its machines',
  '  with [--kubeconfig FILE] [--context NAME] or [--server URL --token TOKEN [--certificate-authority FILE]]',
].join('\n');

const PAGE_ITEMS = 500;
const PAGES_MAX = 200;
/** A machine may be this many minor releases older than its cluster. */
const AGENT_MINORS_BEHIND_MAX = 2;
const NAMES_MAX = 5;

export async function versionCommand(
  args: readonly string[],
  { environment, print }: CommandIo,
  send: SendToApi = sendToApi,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      check: { type: 'boolean', default: false },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
      server: { type: 'string' },
      token: { type: 'string' },
      'certificate-authority': { type: 'string' },
    },
  });
  print(`nodekeeper ${NODEKEEPER_VERSION}, Kubernetes API ${KUBERNETES_VERSION}, Node.js ${process.version}`);
  if (!values.check) return;
  const access = apiAccess(values, environment);
  const { gitVersion } = (await send(access, { method: 'GET', path: '/version' })) as { gitVersion: string };
  const agents = await readAgents(access, send);
  const { lines, isSupported } = compareReleases(NODEKEEPER_VERSION, gitVersion, agents);
  for (const line of lines) print(line);
  if (!isSupported) throw new CommandError('these releases are not supported together', 'install the same release');
}

export interface Agent {
  readonly node: string;
  /** As its Node reports it: v1.36.3-nodekeeper.0.1.0 of our agent. */
  readonly kubeletVersion: string;
}

async function readAgents(access: ApiAccess, send: SendToApi): Promise<readonly Agent[]> {
  const agents: Agent[] = [];
  let after = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = new URLSearchParams({ limit: String(PAGE_ITEMS), ...(after === '' ? {} : { continue: after }) });
    const list = (await send(access, { method: 'GET', path: `/api/v1/nodes?${query}` })) as NodePage;
    for (const { metadata, status } of list.items) {
      agents.push({ node: metadata.name, kubeletVersion: status?.nodeInfo?.kubeletVersion ?? '' });
    }
    after = list.metadata?.continue ?? '';
    if (after === '') return agents;
  }
  return agents;
}

interface NodePage {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly status?: { readonly nodeInfo?: { readonly kubeletVersion?: string } };
  }[];
  readonly metadata?: { readonly continue?: string };
}

/**
 * The rule of support: program and cluster differ by at most one minor release. Our agent is not newer than the
 * cluster, and at most two minor releases older. Kubelets of others are not compared.
 */
export function compareReleases(
  program: string,
  serverVersion: string,
  agents: readonly Agent[],
): { readonly lines: readonly string[]; readonly isSupported: boolean } {
  const cluster = releaseOf(serverVersion);
  if (cluster === undefined) {
    return { lines: [`cluster    ${serverVersion}: this is not a cluster of Nodekeeper`], isSupported: false };
  }
  const clusterText = cluster.join('.');
  const own = partsOf(program);
  const isOwnSupported = own[0] === cluster[0] && Math.abs(own[1] - cluster[1]) <= 1;
  const lines = [`cluster    ${clusterText}${isOwnSupported ? '' : `: more than one minor release from ${program}`}`];
  let isSupported = isOwnSupported;
  for (const [release, nodes] of nodesByRelease(agents)) {
    const remark = remarkOn(partsOf(release), cluster);
    isSupported &&= remark === undefined;
    const named =
      nodes.length > NAMES_MAX ? [...nodes.slice(0, NAMES_MAX), `and ${nodes.length - NAMES_MAX} more`] : nodes;
    lines.push(`agents     ${release}: ${named.join(', ')}${remark === undefined ? '' : `: ${remark}`}`);
  }
  return { lines, isSupported };
}

type Release = readonly [major: number, minor: number, patch: number];

function remarkOn([major, minor, patch]: Release, cluster: Release): string | undefined {
  const isNewer = major > cluster[0] || minor > cluster[1] || (minor === cluster[1] && patch > cluster[2]);
  if (isNewer) return 'newer than the cluster; update the cluster first';
  const isTooOld = major < cluster[0] || minor < cluster[1] - AGENT_MINORS_BEHIND_MAX;
  return isTooOld ? `more than ${AGENT_MINORS_BEHIND_MAX} minor releases older than the cluster` : undefined;
}

const partsOf = (release: string): Release => {
  const [major = 0, minor = 0, patch = 0] = release.split('.').map(Number);
  return [major, minor, patch];
};

/** @returns undefined for a version that names no release of ours */
function releaseOf(version: string): Release | undefined {
  const release = /-nodekeeper\.(\d+\.\d+\.\d+)$/.exec(version)?.[1];
  return release === undefined ? undefined : partsOf(release);
}

function nodesByRelease(agents: readonly Agent[]): readonly (readonly [string, readonly string[]])[] {
  const nodes = new Map<string, string[]>();
  for (const { node, kubeletVersion } of agents) {
    const release = releaseOf(kubeletVersion)?.join('.');
    if (release !== undefined) nodes.set(release, [...(nodes.get(release) ?? []), node]);
  }
  return [...nodes].toSorted(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }));
}
