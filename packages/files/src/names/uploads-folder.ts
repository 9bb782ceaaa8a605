/** The folder of the root with the parts of S3's uploads. It is in no bucket, and followers don't see it. */
export const uploadsFolder = ".s3-uploads";
