/** The time of AWS: the Date header of an unsigned request, which needs no permission. */
import { awsHost } from '../../shared/aws/connection.ts';
import type { AwsAccount } from './aws.ts';
import { measuredExchange } from './exchange.ts';

/**
 * Epoch milliseconds, whole seconds. undefined: the response has no Date header. @throws CommandError without response
 */
export async function awsDateMs({ region, environment }: AwsAccount): Promise<number | undefined> {
  const endpoint = environment['AWS_ENDPOINT_URL_STS'] ?? environment['AWS_ENDPOINT_URL'];
  const { dateMs } = await measuredExchange({ method: 'GET', url: endpoint ?? `https://${awsHost('sts', region)}/` });
  return dateMs;
}
