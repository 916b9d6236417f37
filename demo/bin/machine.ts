/**
 * nodekeeper demo machine join NAME|link cut NAME|link restore NAME|power-cycle NAME|list
 *
 * Real machines of the running cluster: agents of this machine, each behind a link that can be cut.
 */
import { join } from 'node:path';
import { MACHINE_SOCKET, type MachineCommand, type MachineVerb, sendMachineCommand } from '../machines/control.ts';
import { complain, printTable, runControlCommand } from './control-command.ts';

const USAGE = `usage: nodekeeper demo machine [--data DIR] COMMAND

  join NAME           start a real agent on this machine; its pods are processes
  link cut NAME       cut its link to the cluster; link restore NAME undoes that
  power-cycle NAME    end the agent and its pods as a power cut does, and start the agent again
  list                name, link, agent and directory of each
`;

const VERBS: Readonly<Record<string, MachineVerb>> = {
  join: 'join',
  'link cut': 'cutLink',
  'link restore': 'restoreLink',
  'power-cycle': 'powerCycle',
};
const DONE: Readonly<Record<MachineVerb, string>> = {
  join: 'joins',
  cutLink: 'link cut',
  restoreLink: 'link restored',
  powerCycle: 'starts again',
};

function commandOf(words: readonly string[]): MachineCommand | undefined {
  if (words.join(' ') === 'list') return { verb: 'list' };
  const name = words.at(-1) ?? '';
  const verb = VERBS[words.slice(0, -1).join(' ')];
  return verb === undefined ? undefined : { verb, name };
}

async function obey(words: readonly string[], dataDir: string): Promise<number | undefined> {
  const command = commandOf(words);
  if (command === undefined) return undefined;
  const outcome = await sendMachineCommand(join(dataDir, MACHINE_SOCKET), command);
  if (outcome.kind === 'notRunning')
    return complain(`nothing is running in ${dataDir}; start it with: npx nodekeeper serve --demo`);
  const { reply } = outcome;
  switch (reply.kind) {
    case 'listed':
      printTable([
        ['NAME', 'LINK', 'AGENT', 'DIRECTORY'],
        ...reply.machines.map(({ name, link, agent, directory }) => [name, link, agent, directory]),
      ]);
      return 0;
    case 'done':
      if (command.verb !== 'list') console.log(`${command.name} ${DONE[command.verb]}`);
      return 0;
    case 'refused':
      return complain(reply.why);
    case 'malformed':
      return complain(`the running cluster did not understand: ${reply.why}`);
  }
}

await runControlCommand(USAGE, obey);
