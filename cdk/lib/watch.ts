import { CfnOutput } from 'aws-cdk-lib';
import { FunctionUrlAuthType, InvokeMode } from 'aws-cdk-lib/aws-lambda';
import type { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import type { WatchEnvironment } from '../../shared/config/environment.ts';
import { HandlerFunction } from './handler-function.ts';
import { allowTables } from './table-actions.ts';
import type { Tables } from './tables.ts';

export interface WatchProps {
  readonly tables: Tables;
  readonly environment: WatchEnvironment;
  readonly logRetention: RetentionDays;
}

/** Lambda's longest: a client's watch ends and resumes this often. Seconds. */
const WATCH_SECONDS_MAX = 900;

/**
 * Live watches: a function whose URL streams its answer, since the HTTP API cannot. Reached by redirect from the API with a
 * signed ticket, or with the same credentials. Reading the change log in order means raising the heads of its shards
 * (an UpdateItem on items of that one kind); everything else here only reads.
 */
export class Watch extends Construct {
  readonly url: string;

  constructor(scope: Construct, id: string, props: WatchProps) {
    super(scope, id);
    const watch = new HandlerFunction<WatchEnvironment>(this, 'Watch', {
      functionName: 'watch',
      description: 'Streams watches of the Kubernetes API',
      environment: props.environment,
      memoryMegabytes: 128,
      timeoutSeconds: WATCH_SECONDS_MAX,
      logRetention: props.logRetention,
    });
    allowTables(watch, 'watch', props.tables);
    const url = watch.lambda.addFunctionUrl({
      authType: FunctionUrlAuthType.NONE,
      invokeMode: InvokeMode.RESPONSE_STREAM,
    });
    this.url = url.url;
    new CfnOutput(this, 'Url', { value: this.url, description: 'Where watches are streamed' });
  }
}
