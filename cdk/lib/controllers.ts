import { Stack } from 'aws-cdk-lib';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { type FunctionName, functionList, type ListedFunction } from '../../functions/function-list.ts';
import { type FunctionSurroundings, ManifestFunction, type VariableValues } from './manifest-function.ts';

/** The functions that streams, ticks and events call: all functions that do not answer requests. */
export function createControllers(
  scope: Construct,
  surroundings: FunctionSurroundings,
  variables: VariableValues,
): readonly (readonly [FunctionName, IFunction])[] {
  const known: VariableValues = {
    ...variables,
    TICK_QUEUE_URL: surroundings.tickChain.queue.queueUrl,
    PART_QUEUE_URL: surroundings.partQueue.queue.queueUrl,
  };
  const create = (manifest: ListedFunction, values: VariableValues): ManifestFunction =>
    new ManifestFunction(scope, { manifest, surroundings, variables: values });
  const controllers = functionList.filter(
    ({ triggers }) => !triggers.some(({ kind }) => kind === 'http' || kind === 'functionUrl'),
  );
  const others = new Map(
    controllers.filter((manifest) => !isWaker(manifest)).map((manifest) => [manifest, create(manifest, known)]),
  );
  // Those that wake others last: they know their names.
  const woken = [...others].filter(([{ triggers }]) => triggers.some(({ kind }) => kind === 'tick'));
  const wakers = controllers.filter(isWaker).map((manifest) => {
    const own = woken.filter(([{ name }]) => manifest.wakes?.includes(name) ?? true);
    const names = Object.fromEntries(own.map(([{ name }, { lambda }]) => [name, lambda.functionName]));
    const waker = create(manifest, { ...known, WAKE_FUNCTIONS: Stack.of(scope).toJsonString(names) });
    waker.allow(
      ['lambda:InvokeFunction'],
      own.map(([, { lambda }]) => lambda.functionArn),
    );
    return [manifest.name, waker.lambda] as const;
  });
  return [...[...others].map(([{ name }, { lambda }]) => [name, lambda] as const), ...wakers];
}

/** Whether it wakes other functions. */
const isWaker = ({ environment }: ListedFunction): boolean => environment?.includes('WAKE_FUNCTIONS') === true;
