/**
 * Removes everything that a journal names.
 *
 * May run twice, at once, and after an end at any point: each step looks at what exists, and removing what does not
 * exist is no error. Log groups that outlive their stack are written down before the stack is deleted, because nothing
 * names them afterwards. A process that still deploys is waited for by the user: it could create the stack later.
 */
import { CommandError } from '../command.ts';
import type { Creation, Journal } from './journal.ts';
import type { Stacks } from './stacks.ts';

export interface Removing {
  readonly stacks: Stacks;
  readonly journal: Journal;
  readonly print: (line: string) => void;
  readonly pause: (milliseconds: number) => Promise<void>;
}

const LOG_GROUP = 'AWS::Logs::LogGroup';
/** A stack of this size is deleted in 3 to 6 minutes. */
const LOOKS_MAX = 240;
const LOOK_MS = 5_000;
/** A deletion that failed is requested again: most are over in the second attempt. */
const DELETIONS_MAX = 2;

/** @returns what could not be removed; the journal then remains. @throws CommandError while it is still deployed */
export async function removeAll(removing: Removing): Promise<readonly Creation[]> {
  const { stacks, journal, print } = removing;
  const { left } = journal;
  const running = left.find((creation) => creation.kind === 'stack' && creation.pid && stacks.isRunning(creation.pid));
  if (running?.kind === 'stack') {
    throw new CommandError(
      `process ${running.pid} still deploys ${running.name}`,
      `end it (kill ${running.pid}), then: nodekeeper prove --remove ${journal.path}`,
    );
  }
  const ofKind = (kind: Creation['kind']) => left.filter((creation) => creation.kind === kind);
  await Promise.all(ofKind('stack').map((stack) => attempt(print, () => removeStack(removing, stack))));
  if (ofKind('stack').length === 0) {
    for (const group of ofKind('logGroup')) {
      await attempt(print, async () => {
        await stacks.deleteLogGroup(group.name);
        journal.removed(group);
      });
    }
  }
  if (left.length > 0) return [...left];
  journal.end();
  return [];
}

async function attempt(print: (line: string) => void, step: () => Promise<void>): Promise<void> {
  try {
    await step();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    print(`${error.message}: ${error.next}`);
  }
}

async function removeStack({ stacks, journal, print, pause }: Removing, { name }: Creation): Promise<void> {
  if ((await stacks.describe(name)) !== undefined) {
    await noteLogGroups(stacks, journal, name);
    print(`removing the stack ${name}`);
    await stacks.delete(name);
    await untilDeleted(stacks, name, pause);
  }
  // A function that ran meanwhile may have made its log group again.
  for (const group of await stacks.logGroups(`/aws/lambda/${name}-`))
    journal.creating({ kind: 'logGroup', name: group });
  journal.removed({ kind: 'stack', name });
}

/** The log groups of a stack. It retains some. */
export async function noteLogGroups(stacks: Stacks, journal: Journal, stackName: string): Promise<void> {
  for (const { type, physicalId } of await stacks.resources(stackName)) {
    if (type === LOG_GROUP && physicalId !== undefined) journal.creating({ kind: 'logGroup', name: physicalId });
  }
}

async function untilDeleted(stacks: Stacks, name: string, pause: Removing['pause']): Promise<void> {
  let deletions = 1;
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    const stack = await stacks.describe(name);
    if (stack === undefined) return;
    if (stack.status === 'DELETE_FAILED') {
      if (deletions === DELETIONS_MAX) throw notRemoved(name, stack.statusReason ?? stack.status);
      deletions += 1;
      await stacks.delete(name);
    }
    await pause(LOOK_MS);
  }
  throw notRemoved(name, `it was not deleted within ${(LOOKS_MAX * LOOK_MS) / 60_000} minutes`);
}

const notRemoved = (name: string, why: string): CommandError =>
  new CommandError(`the stack ${name} is not removed: ${why}`, 'read its events in the console of CloudFormation');

/** The command of the AWS CLI that removes it. */
export const commandFor = ({ kind, name }: Creation, region: string): string =>
  kind === 'stack'
    ? `aws cloudformation delete-stack --region ${region} --stack-name ${name}`
    : `aws logs delete-log-group --region ${region} --log-group-name ${name}`;
