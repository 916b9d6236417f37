/** A stack and its region, as users name them. */
import { REGION_PATTERN } from '../connection.ts';

/** The name in cdk/lib/nodekeeper-app.ts. */
export const DEFAULT_STACK = 'Nodekeeper';

/** Source: CloudFormation API reference, "CreateStack", StackName. */
export const isStackName = (text: string): boolean => /^[A-Za-z][A-Za-z0-9-]{0,127}$/.test(text);

const REGION = new RegExp(`^${REGION_PATTERN}$`);
export const isRegion = (text: string): boolean => REGION.test(text);

/** Source: AWS CLI User Guide, "Environment variables". */
export const regionOfEnvironment = (environment: Readonly<Record<string, string | undefined>>): string | undefined =>
  environment['AWS_REGION'] ?? environment['AWS_DEFAULT_REGION'];
