/** Stacks of a run in an account: CloudFormation, and `cdk deploy` of this project as users run it. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import {
  CloudFormationClient,
  CreateStackCommand,
  DeleteStackCommand,
  DescribeStacksCommand,
  ListStackResourcesCommand,
} from '@aws-sdk/client-cloudformation';
import { CommandError } from '../command.ts';
import { callAws, clientOptions } from '../doctor/aws.ts';
import { jsonCalls, type ProveAccount } from './aws-calls.ts';
import type { ClusterStack, StackResource, Stacks } from './stacks.ts';

export interface Deployment {
  /** A clone of the project, with its dependencies. */
  readonly directory: string;
  /** Passed to the CDK. */
  readonly profile: string | undefined;
  /** Receives the output of the CDK. */
  readonly logFile: string;
}

const PAGES_MAX = 10;
const CDK = join('node_modules', 'aws-cdk', 'bin', 'cdk');

/** @throws CommandError when the directory is no clone */
export function requireClone(directory: string): void {
  if (existsSync(join(directory, 'cdk.json')) && existsSync(join(directory, CDK))) return;
  throw new CommandError(
    `${directory} has no cdk.json with the CDK`,
    'run it in a clone of the project, after `npm ci`: it deploys the template of this release',
  );
}

export function awsStacks(account: ProveAccount, deployment: Deployment): Stacks {
  const json = jsonCalls(account);
  const call = async <Result>(action: string, send: (client: CloudFormationClient) => Promise<Result>) => {
    const options = clientOptions({ ...account, credentials: await account.credentials() }, 'CLOUDFORMATION');
    return callAws(new CloudFormationClient(options), `cloudformation:${action}`, send);
  };
  const logs = async (action: string, input: Readonly<Record<string, unknown>>) => {
    const { status, body } = await json('logs', action, input);
    if (status < 300) return body;
    const type = String(body['__type'] ?? status);
    if (type.endsWith('ResourceNotFoundException')) return undefined;
    throw new CommandError(`logs:${action}: ${type}: ${body['message'] ?? ''}`, `allow logs:${action} for your role`);
  };
  return {
    describe: (name) =>
      call('DescribeStacks', async (client) => {
        try {
          const { Stacks: [stack] = [] } = await client.send(new DescribeStacksCommand({ StackName: name }));
          if (stack === undefined) return undefined;
          const { StackStatus: status = '', StackStatusReason: statusReason, Outputs: outputs = [] } = stack;
          const named = outputs.map(({ OutputKey = '', OutputValue = '' }) => [OutputKey, OutputValue] as const);
          return { status, statusReason, outputs: new Map(named) };
        } catch (error) {
          if (error instanceof Error && error.message.includes('does not exist')) return undefined;
          throw error;
        }
      }),
    resources: (name) =>
      call('ListStackResources', async (client) => {
        const found: StackResource[] = [];
        let token: string | undefined;
        for (let page = 0; page < PAGES_MAX; page += 1) {
          const answer = await client.send(new ListStackResourcesCommand({ StackName: name, NextToken: token }));
          for (const {
            LogicalResourceId: logicalId = '',
            ResourceType: type = '',
            ...rest
          } of answer.StackResourceSummaries ?? []) {
            found.push({ logicalId, type, physicalId: rest.PhysicalResourceId });
          }
          token = answer.NextToken;
          if (token === undefined) break;
        }
        return found;
      }),
    create: (name, template) =>
      call('CreateStack', async (client) => {
        await client.send(
          new CreateStackCommand({
            StackName: name,
            TemplateBody: JSON.stringify(template),
            Capabilities: ['CAPABILITY_IAM'],
            // A repeated request is the same one.
            ClientRequestToken: name,
          }),
        );
      }),
    delete: (name) =>
      call('DeleteStack', async (client) => {
        await client.send(new DeleteStackCommand({ StackName: name }));
      }),
    async deleteLogGroup(name) {
      return (await logs('DeleteLogGroup', { logGroupName: name })) !== undefined;
    },
    async logGroups(prefix) {
      const { logGroups = [] } = ((await logs('DescribeLogGroups', { logGroupNamePrefix: prefix })) ?? {}) as {
        readonly logGroups?: readonly { readonly logGroupName?: string }[];
      };
      return logGroups.map(({ logGroupName = '' }) => logGroupName);
    },
    deployCluster: (stack, signal, onStart) => deploy(account, deployment, { stack, signal, onStart }),
    isRunning,
  };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // None has this id, or one of another user has it by now.
    return false;
  }
}

/** The arguments of `cdk deploy`, as in docs/operations/deploy.md. */
const cdkArguments = ({ settings, parameters }: ClusterStack, profile: string | undefined): string[] => [
  'deploy',
  '--require-approval=never',
  '--progress=events',
  ...Object.entries(settings).flatMap(([name, value]) => ['--context', `${name}=${value}`]),
  ...Object.entries(parameters).flatMap(([name, value]) => ['--parameters', `${name}=${value}`]),
  ...(profile === undefined ? [] : ['--profile', profile]),
];

interface DeployRun {
  readonly stack: ClusterStack;
  readonly signal: AbortSignal;
  readonly onStart: (pid: number) => void;
}

/** An interruption ends the CDK. CloudFormation continues, and the removal deletes what it has. */
function deploy({ region, environment }: ProveAccount, deployment: Deployment, run: DeployRun): Promise<void> {
  const { directory, profile, logFile } = deployment;
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(process.execPath, [CDK, ...cdkArguments(run.stack, profile)], {
    cwd: directory,
    env: { ...environment, AWS_REGION: region, CDK_OUTDIR: undefined },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const end = (): void => void child.kill();
  return new Promise<void>((resolve, reject) => {
    child.once('error', (cause) =>
      reject(new CommandError(`the CDK does not start: ${cause.message}`, 'run `npm ci`', { cause })),
    );
    child.once('exit', (code, signalName) => {
      if (code === 0) return resolve();
      reject(new CommandError(`cdk deploy ended with ${code ?? signalName}`, `read ${logFile}`));
    });
    if (child.pid !== undefined) run.onStart(child.pid);
    run.signal.addEventListener('abort', end, { once: true });
    if (run.signal.aborted) end();
  }).finally(() => run.signal.removeEventListener('abort', end));
}
