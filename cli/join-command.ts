/**
 * nodekeeper join-command
 *
 * Creates a bootstrap token and prints the one line that joins a machine with it: this one, or with --install another
 * one that has a copy of agent/dist.
 */
import { parseArgs } from 'node:util';
import { type SendToApi, sendToApi } from './api-request.ts';
import { createToken } from './bootstrap-token.ts';
import { CommandError, type CommandIo } from './command.ts';
import { agentLine, installLine } from './join-line.ts';
import { apiAccess } from './kubeconfig.ts';

export const JOIN_USAGE = [
  'nodekeeper join-command [--node-name NAME] [--runtime exec|podman|none] [--uses N] [--hours N]    this machine',
  'nodekeeper join-command --install [--endpoint URL] …    another machine, with a copy of agent/dist',
  '  each with [--nodes PATTERN] [--label KEY=VALUE]… [--cluster-id ID]',
  '  and [--kubeconfig FILE] [--context NAME] or [--server URL --token TOKEN [--certificate-authority FILE]]',
].join('\n');

const HOURS = '1';
const LOOPBACK = /^https:\/\/(127\.|localhost[:/]|localhost$|\[::1\])/;

export async function joinCommand(
  args: readonly string[],
  { environment, nowMs, print, note }: CommandIo,
  send: SendToApi = sendToApi,
): Promise<void> {
  const { values } = parse(args);
  const access = apiAccess(values, environment);
  const { 'node-name': nodeName, 'cluster-id': clusterId, endpoint = access.url, runtime, install = false } = values;
  if (install && LOOPBACK.test(endpoint)) {
    throw new CommandError(
      `the cluster is at ${endpoint}, which other machines cannot reach`,
      'start it with `nodekeeper serve --listen ADDRESS --tokens FILE`, or name its address with --endpoint URL',
    );
  }
  const hours = values.hours ?? HOURS;
  const token = await createToken({ ...values, nodes: values.nodes ?? nodeName, hours }, nowMs, (call) =>
    send(access, call),
  );
  const join = { access, token, endpoint, nodeName, runtime, clusterId };
  print(install ? installLine(join) : agentLine(join));
  const uses = values.uses === undefined || values.uses === '1' ? 'once' : `${values.uses} times`;
  note?.(`# valid ${uses}, for ${hours} h`);
}

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    options: {
      install: { type: 'boolean' },
      'node-name': { type: 'string' },
      endpoint: { type: 'string' },
      runtime: { type: 'string' },
      'cluster-id': { type: 'string' },
      uses: { type: 'string' },
      hours: { type: 'string' },
      nodes: { type: 'string' },
      label: { type: 'string', multiple: true },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
      server: { type: 'string' },
      token: { type: 'string' },
      'certificate-authority': { type: 'string' },
    },
  });
