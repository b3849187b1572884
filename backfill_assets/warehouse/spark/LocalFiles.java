package backfill_assets;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local file system, but permissions are set by Java instead of by a new process of chmod. */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    static class Raw extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            String bits = permission.toString();
            // Janino infers no types, so this one is cast.
            PosixFileAttributeView file = (PosixFileAttributeView)
                Files.getFileAttributeView(pathToFile(path).toPath(), PosixFileAttributeView.class);
            // Java knows no sticky bit, and a file store may know no permissions of this kind.
            if (file != null && bits.matches("[rwx-]{9}")) {
                file.setPermissions(PosixFilePermissions.fromString(bits));
            } else {
                super.setPermission(path, permission);
            }
        }
    }
}
