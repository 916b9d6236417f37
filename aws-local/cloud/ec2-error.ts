/** An error as EC2 answers it. */
export class Ec2ApiError extends Error {
  override readonly name = 'Ec2ApiError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
