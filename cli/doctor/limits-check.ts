/** Reads the limits of an account and Region: Lambda's own settings, and Service Quotas. */
import { GetAccountSettingsCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  GetAWSDefaultServiceQuotaCommand,
  GetServiceQuotaCommand,
  NoSuchResourceException,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { CommandError } from '../command.ts';
import { type AwsAccount, callAws, clientOptions } from './aws.ts';
import type { Check } from './check.ts';
import {
  codeStorageFinding,
  concurrencyFinding,
  type LambdaLimits,
  type Load,
  reservationFinding,
  reservedFinding,
  TABLE_READS_QUOTA,
  TABLE_WRITES_QUOTA,
  THROTTLE_QUOTA,
  tableFinding,
  throttleFinding,
} from './limits.ts';

/** @param load of the fleet; read once for each check @param isDeployed the functions of the cluster are there */
export function limitChecks(
  account: AwsAccount,
  load: () => Promise<Load>,
  { isDeployed }: { readonly isDeployed: boolean },
): Check[] {
  const { region } = account;
  let settings: Promise<LambdaLimits> | undefined;
  const lambda = (): Promise<LambdaLimits> => (settings ??= lambdaLimits(account));
  const lambdaCheck =
    (find: typeof concurrencyFinding): Check['run'] =>
    async () => {
      const [limits, fleet] = [await lambda(), await load()];
      return (isDeployed ? reservedFinding(limits, fleet) : undefined) ?? find(limits, fleet, region);
    };
  return [
    { name: 'lambda-concurrency', run: lambdaCheck(concurrencyFinding) },
    { name: 'reserved-concurrency', run: lambdaCheck(reservationFinding) },
    { name: 'lambda-code-storage', run: async () => codeStorageFinding(await lambda()) },
    {
      name: 'api-gateway-throttle',
      run: async () => throttleFinding(await quotaOf(account, 'apigateway', THROTTLE_QUOTA), await load(), region),
    },
    {
      name: 'dynamodb-table',
      run: async () => {
        const [reads, writes] = await Promise.all([
          quotaOf(account, 'dynamodb', TABLE_READS_QUOTA),
          quotaOf(account, 'dynamodb', TABLE_WRITES_QUOTA),
        ]);
        return tableFinding({ reads, writes }, await load(), region);
      },
    },
  ];
}

/** Source: Lambda API reference, "GetAccountSettings". */
async function lambdaLimits(account: AwsAccount): Promise<LambdaLimits> {
  const { AccountLimit: limit = {}, AccountUsage: usage = {} } = await callAws(
    new LambdaClient(clientOptions(account, 'LAMBDA')),
    'lambda:GetAccountSettings',
    (client) => client.send(new GetAccountSettingsCommand({})),
  );
  return {
    concurrency: limit.ConcurrentExecutions ?? 0,
    unreserved: limit.UnreservedConcurrentExecutions ?? 0,
    codeBytes: usage.TotalCodeSize ?? 0,
    codeBytesMax: limit.TotalCodeSize ?? 0,
  };
}

/**
 * The value of this account, or AWS's default where the account has none of its own.
 * Source: Service Quotas API reference, "GetServiceQuota": "For some quotas, only the default values are available."
 */
async function quotaOf(account: AwsAccount, ServiceCode: string, QuotaCode: string): Promise<number> {
  const client = new ServiceQuotasClient(clientOptions(account, 'SERVICE_QUOTAS'));
  const { Quota: quota } = await callAws(client, 'servicequotas:GetServiceQuota', async () => {
    try {
      return await client.send(new GetServiceQuotaCommand({ ServiceCode, QuotaCode }));
    } catch (error) {
      if (!(error instanceof NoSuchResourceException)) throw error;
      return await client.send(new GetAWSDefaultServiceQuotaCommand({ ServiceCode, QuotaCode }));
    }
  });
  if (quota?.Value !== undefined) return quota.Value;
  throw new CommandError(`Service Quotas has no value of ${ServiceCode} ${QuotaCode}`, 'read it in the console');
}
