import {
  DEFAULT_STACK,
  isRegion,
  isStackName,
  regionOfEnvironment,
} from '../../shared/aws/cloudformation/stack-name.ts';
import { StartError } from '../../shared/host/start-error.ts';

/** `--region` and `--stack`. @param neededBy the option that needs them. @throws StartError */
export function stackIn(
  values: { readonly region?: string | undefined; readonly stack?: string | undefined },
  neededBy: string,
): { readonly region: string; readonly stack: string } {
  const { region = regionOfEnvironment(process.env), stack = DEFAULT_STACK } = values;
  if (region === undefined || !isRegion(region)) throw new StartError(`${neededBy} needs --region, such as eu-west-1`);
  if (!isStackName(stack)) throw new StartError(`--stack ${stack} is not a valid stack name`);
  return { region, stack };
}
