/**
 * nodekeeper demo cloud list|terminate NODE…|stop NODE…|start NODE…|vanish NODE…|error CODE|error none
 *
 * Says what the EC2 of the running cluster does to instances, and which error it answers. A node is named by its name
 * or its instance id; globs are accepted, quoted from the shell.
 */
import { join } from 'node:path';
import {
  CLOUD_SOCKET,
  type CloudCommand,
  INSTANCE_VERBS,
  type ListedInstance,
  sendCloudCommand,
} from '../ec2/control.ts';
import { complain, printTable, runControlCommand } from './control-command.ts';

const USAGE = `usage: nodekeeper demo cloud [--data DIR] COMMAND

  list               instances of the local EC2
  terminate NODE…    they shut down and end
  stop NODE…         they stop; start NODE… starts them again
  vanish NODE…       EC2 does not know them any more; start undoes it
  error CODE         every call of EC2 is answered CODE, such as RequestLimitExceeded or InternalError,
                     or not at all (timeout), or by half (cut)
  error none         it answers again`;

async function obey(words: readonly string[], dataDir: string): Promise<number | undefined> {
  const command = commandOf(words);
  if (command === undefined) return undefined;

  const outcome = await sendCloudCommand(join(dataDir, CLOUD_SOCKET), command);
  if (outcome.kind === 'notRunning')
    return complain(`nothing is running in ${dataDir}; start it with: npx nodekeeper serve --demo`);
  const { reply } = outcome;
  switch (reply.kind) {
    case 'listed':
      table(reply.instances);
      console.log(
        `\n${reply.endpoint === undefined ? 'in this process' : `endpoint ${reply.endpoint}`}${reply.trouble === null ? '' : `, answers ${reply.trouble}`}`,
      );
      return 0;
    case 'done': {
      table(reply.instances);
      const refused = reply.instances.filter(({ order }) => order !== 'done');
      for (const { name, instanceId, order, state } of refused) {
        console.error(
          `${name || instanceId}: ${order === 'unknown' ? 'EC2 does not know it' : `cannot ${command.verb} while ${state}`}`,
        );
      }
      return refused.length === 0 ? 0 : 1;
    }
    case 'errorSet':
      console.log(reply.code === null ? 'EC2 answers' : `EC2 answers ${reply.code} to every call`);
      return 0;
    case 'unknown':
      return complain(`no such instance: ${reply.names.join(', ')} (nodekeeper demo cloud list)`);
    case 'malformed':
      return complain(`the running EC2 did not understand: ${reply.why}`);
  }
}

function commandOf([verb, ...names]: readonly string[]): CloudCommand | undefined {
  if (verb === 'list' && names.length === 0) return { verb };
  if (verb === 'error') {
    const [code, ...others] = names;
    return code === undefined || others.length > 0 ? undefined : { verb, code: code === 'none' ? null : code };
  }
  const known = INSTANCE_VERBS.find((one) => one === verb);
  return known === undefined || names.length === 0 ? undefined : { verb: known, names };
}

function table(instances: readonly ListedInstance[]): void {
  const nowMs = Date.now();
  const rows = instances.map(({ name, instanceId, zone, state, launchedAtMs }) => [
    name === '' ? '-' : name,
    instanceId,
    zone,
    state,
    launchedAtMs === undefined ? '' : `${Math.round((nowMs - launchedAtMs) / 1_000)}s ago`,
  ]);
  printTable([['NODE', 'INSTANCE', 'ZONE', 'STATE', 'LAUNCHED'], ...rows]);
}

await runControlCommand(USAGE, obey);
