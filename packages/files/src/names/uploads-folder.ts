/**
 * The folder in the root that holds the parts of S3 uploads. It is in no bucket, and followers don't see it.
 */
export const uploadsFolder = ".s3-uploads";
