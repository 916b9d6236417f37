/** AWS credentials and region, from the sources that the AWS CLI uses. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultProvider } from '@aws-sdk/credential-provider-node';
import { isRegion } from '../shared/aws/cloudformation/stack-name.ts';
import type { AwsCredentials } from '../shared/aws/connection.ts';
import { CommandError, type CommandIo } from './command.ts';

export type FindCredentials = (profile: string | undefined) => Promise<AwsCredentials>;

export const fromAws: FindCredentials = (profile) => defaultProvider(profile === undefined ? {} : { profile })();

/** @throws CommandError when no credentials are found */
export async function requireCredentials(profile: string | undefined, find: FindCredentials): Promise<AwsCredentials> {
  try {
    return await find(profile);
  } catch (cause) {
    throw new CommandError(
      `no AWS credentials were found: ${(cause as Error).message}`,
      'run `aws sts get-caller-identity` to check the credentials of the AWS CLI, or pass --profile',
      { cause },
    );
  }
}

type Environment = CommandIo['environment'];

/** @throws CommandError when it is missing or malformed */
export function requireRegion(region: string | undefined): string {
  if (region !== undefined && isRegion(region)) return region;
  throw new CommandError(
    region === undefined ? 'no region is set' : `${JSON.stringify(region)} is not an AWS region`,
    'pass --region or set AWS_REGION, such as eu-west-1',
  );
}

/** The `region` of a profile in the AWS configuration file. undefined: none is set. */
export function regionOfProfile(profile: string | undefined, environment: Environment): string | undefined {
  const path = environment['AWS_CONFIG_FILE'] ?? join(environment['HOME'] ?? '', '.aws', 'config');
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    // Without this file AWS_REGION is usually set. requireRegion reports it when both are missing.
    return undefined;
  }
  const wanted = profile ?? 'default';
  let inside = false;
  for (const line of text.split('\n')) {
    const heading = /^\s*\[\s*(?:profile\s+)?([^\]]+?)\s*\]/.exec(line)?.[1];
    if (heading !== undefined) inside = heading === wanted;
    const region = /^\s*region\s*=\s*([^\s#;]+)/.exec(line)?.[1];
    if (inside && region !== undefined) return region;
  }
  return undefined;
}
