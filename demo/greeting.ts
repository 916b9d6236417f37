import { relative } from 'node:path';

export interface Greeted {
  readonly url: string;
  /** From the start until it serves. */
  readonly seconds: number;
  /** undefined: the users of the cluster are not ours. */
  readonly kubeconfigPath: string | undefined;
  readonly dataDirectory: string;
  /** The one that commands use without `--data`. */
  readonly defaultDirectory: string;
  readonly nodes: number;
  readonly zones: number;
  readonly ec2Nodes: number;
  /** Address of the console; undefined: it is not served. */
  readonly console: string | undefined;
}

/** What a cluster on this machine says when it serves: what to type next. */
export function greeting(cluster: Greeted): string {
  const served = `Nodekeeper serves ${cluster.url} after ${cluster.seconds.toFixed(1)} s. Ctrl-C stops it.`;
  if (cluster.kubeconfigPath === undefined) return `${served}\n`;
  const path = fromHere(cluster.kubeconfigPath);
  const lines = [
    `${served} In another terminal:`,
    '',
    `  export KUBECONFIG=${path.startsWith('/') ? path : `$PWD/${path}`}`,
    '  kubectl get nodes -o wide',
  ];
  if (cluster.nodes > 0) {
    const directory = fromHere(cluster.dataDirectory);
    // The names follow the zones that the machines are dealt to.
    const machine = cluster.nodes > 1 && cluster.zones > 1 ? 'edge-b-0' : 'edge-a-0';
    const data = directory === cluster.defaultDirectory ? '' : `--data ${directory} `;
    lines.push(
      '  kubectl create deployment web --image=nginx --replicas=3',
      '  kubectl get pods -o wide',
      `  npx nodekeeper demo fleet ${data}silence ${machine}     # its heartbeats stop: NotReady after the grace period (40 s)`,
      '  kubectl get events',
      `  npx nodekeeper demo fleet ${data}beat ${machine}`,
    );
    if (cluster.ec2Nodes > 0) {
      lines.push(
        `  npx nodekeeper demo cloud ${data}terminate edge-a-0   # its instance terminates: the Node is deleted`,
      );
    }
    lines.push('  npx nodekeeper decisions');
  } else {
    lines.push('  kubectl api-resources', '  kubectl get leases -n kube-node-lease');
  }
  if (cluster.console !== undefined) lines.push('', `The console is at ${cluster.console}`);
  return `${lines.join('\n')}\n`;
}

/** The path as it is typed in this directory. */
function fromHere(path: string): string {
  const found = relative('', path);
  return found.startsWith('..') ? path : found;
}
