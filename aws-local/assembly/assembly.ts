import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../shared/host/start-error.ts';
import { isObject, type Template } from './template.ts';

/** What `cdk synth` left in a folder: the stack that holds the functions, and its bundled assets. */
export interface Assembly {
  readonly stackName: string;
  readonly template: Template;
  /** Folder of an asset, by the object key the template names (`<hash>.zip`). */
  assetPath(objectKey: string): string | undefined;
}

/** @throws StartError when there is no assembly, or not exactly one stack with functions in it. */
export function readAssembly(directory: string): Assembly {
  const artifacts = Object.entries(readObject(join(directory, 'manifest.json'))['artifacts'] ?? {}).filter(
    (entry): entry is [string, Record<string, unknown>] => isObject(entry[1]),
  );
  const fileOf = (artifact: Record<string, unknown>, property: string) => {
    const properties = artifact['properties'];
    return join(directory, isObject(properties) ? String(properties[property]) : '');
  };

  const stacks = artifacts
    .filter(([, artifact]) => artifact['type'] === 'aws:cloudformation:stack')
    .map(([id, artifact]) => ({ stackName: id, template: readTemplate(fileOf(artifact, 'templateFile')) }))
    .filter(({ template }) =>
      Object.values(template.Resources).some((resource) => resource.Type === 'AWS::Lambda::Function'),
    );
  const [stack, ...others] = stacks;
  if (stack === undefined) throw new StartError(`${directory} holds no stack with a function`);
  if (others.length > 0) {
    const names = stacks.map(({ stackName }) => stackName).join(', ');
    throw new StartError(`${directory} holds several stacks with functions (${names}); local mode runs one`);
  }

  const assets = new Map<string, string>();
  for (const [, artifact] of artifacts) {
    if (artifact['type'] !== 'cdk:asset-manifest') continue;
    for (const file of Object.values(readObject(fileOf(artifact, 'file'))['files'] ?? {})) {
      if (!isObject(file) || !isObject(file['source']) || !isObject(file['destinations'])) continue;
      for (const destination of Object.values(file['destinations'])) {
        if (isObject(destination))
          assets.set(String(destination['objectKey']), join(directory, String(file['source']['path'])));
      }
    }
  }
  return { ...stack, assetPath: (objectKey) => assets.get(objectKey) };
}

function readTemplate(file: string): Template {
  const template = readObject(file);
  if (!isObject(template['Resources'])) throw new StartError(`${file} is not a CloudFormation template`);
  return template as unknown as Template;
}

function readObject(file: string): Record<string, unknown> {
  if (!existsSync(file)) throw new StartError(`${file} does not exist: synthesise first`);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new StartError(`${file} is not JSON; delete its folder and start again`, { cause });
  }
  if (!isObject(content)) throw new StartError(`${file} is not a JSON object`);
  return content;
}
