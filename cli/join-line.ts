/** The one line that joins a machine: where the cluster is, how it is recognised, and a bootstrap token. */
import { resolve } from 'node:path';
import { authorityHash } from '../shared/host/authority-hash.ts';
import type { ApiAccess } from './kubeconfig.ts';

export interface Join {
  readonly access: ApiAccess;
  readonly token: string;
  /** Absent: that of the access. */
  readonly endpoint?: string | undefined;
  readonly nodeName?: string | undefined;
  readonly runtime?: string | undefined;
  readonly clusterId?: string | undefined;
}

/** Flags that the agent and its installer share. */
function flagsOf({ access, token, endpoint = access.url, clusterId }: Join): string[] {
  const { execArgs = [] } = access.kubeconfig ?? {};
  const named = execArgs.indexOf('--cluster-id');
  const id = clusterId ?? (named < 0 ? undefined : execArgs[named + 1]);
  return [
    `--endpoint ${endpoint}`,
    ...(access.ca === undefined ? [] : [`--ca-hash ${authorityHash(access.ca)}`]),
    `--bootstrap-token ${token}`,
    ...(id === undefined ? [] : [`--cluster-id ${id}`]),
  ];
}

/** For this machine and this directory. Its state stays in this directory, and swap is no hindrance. */
export function agentLine(join: Join): string {
  const { nodeName, runtime = 'exec' } = join;
  const root = resolve('.nodekeeper-agent', nodeName ?? '');
  return [
    'npm run --silent agent --',
    ...flagsOf(join),
    `--runtime ${runtime} --root-dir ${root} --fail-swap-on=false`,
    ...(nodeName === undefined ? [] : [`--hostname-override ${nodeName}`]),
  ].join(' ');
}

/** For a machine with a copy of agent/dist, as root: installs the agent as a service. */
export function installLine(join: Join): string {
  const { nodeName, runtime } = join;
  return [
    'dist/install.sh',
    ...flagsOf(join),
    ...(runtime === undefined ? [] : [`--runtime ${runtime}`]),
    ...(nodeName === undefined ? [] : [`--node-name ${nodeName}`]),
  ].join(' ');
}
